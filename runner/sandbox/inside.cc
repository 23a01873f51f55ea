// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/privileges.h"
#include "base/sys.h"
#include "sandbox/agent_process.h"
#include "sandbox/landlock.h"

namespace sandbox {
namespace {

Status BecomeAgentUser(const Inside& inside) {
  const SandboxPlan& plan = *inside.plan;
  if (!plan.as_root) return Ok();
  bool inner = inside.user >= 0;
  uid_t uid = inner ? plan.inner_uid : plan.host_uid;
  gid_t gid = inner ? plan.inner_gid : plan.host_gid;
  if (::setgroups(0, nullptr) != 0) return Errno("setgroups");
  if (::setresgid(gid, gid, gid) != 0) return Errno("setresgid");
  if (::setresuid(uid, uid, uid) != 0) return Errno("setresuid");
  return Ok();
}

}  // namespace

Status Enter(const Inside& inside, Rights rights, std::vector<Fd*> kept) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  for (int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);  // They are errors of calls.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  pid_t supervisor = ::getppid();
  ::umask(0);
  if (inside.user >= 0) {
    if (::setns(inside.user, CLONE_NEWUSER) != 0) return Errno("setns(user)");
    // It parses what others wrote, and needs no network: one without any device in use.
    if (::unshare(CLONE_NEWNET) != 0) return Errno("unshare(CLONE_NEWNET)");
    if (rights == Rights::kAgent && ::setns(inside.mounts, CLONE_NEWNS) != 0) {
      return Errno("setns(mnt)");
    }
  }
  std::vector<int> numbers;
  for (Fd* fd : kept) numbers.push_back(fd->get());
  sys::CloseAllExcept(numbers);
  sys::WipeEnvironment();
  sys::WipeArguments();
  if (rights == Rights::kAgent) {
    TRY(BecomeAgentUser(inside));
    TRY(LimitFileSize(inside.plan->limits, 0));
  }
  // The ids change that, so after them. The supervisor may be gone by now.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Errno("prctl(PR_SET_PDEATHSIG)");
  if (::getppid() != supervisor) return Error{Code::kIo, "the supervisor ended"};
  if (rights == Rights::kLayers) return Ok();
  TRY(sys::ForgoNewPrivileges());
  if (inside.user >= 0) TRY(sys::DropCapabilities(0));
  Fd ruleset = TRY(BuildLandlock(inside.plan->landlock, inside.plan->landlock_required));
  if (ruleset.valid()) TRY(sys::landlock::Restrict(ruleset.get()));
  return Ok();
}

}  // namespace sandbox
