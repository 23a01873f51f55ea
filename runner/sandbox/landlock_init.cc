// SPDX-License-Identifier: Apache-2.0
#include "sandbox/landlock_init.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/privileges.h"
#include "base/process.h"
#include "base/sys.h"
#include "sandbox/filter/seccomp.h"
#include "sandbox/landlock.h"
#include "sandbox/limit/descendants.h"

namespace sandbox {
namespace {

constexpr rlim_t kUsersMore = 64;
// The rounds of killing: one is enough, unless something forks meanwhile.
constexpr int kRounds = 100;

// Returns how many processes and threads the kernel counts for this user, its other containers'
// among them, which /proc may not show. Found by trying: a process fits below one limit, and not
// below the next.
rlim_t TasksOfUser() {
  constexpr rlim_t kTasksMax = rlim_t{1} << 22;  // PID_MAX_LIMIT
  rlimit kept{};
  if (::getrlimit(RLIMIT_NPROC, &kept) != 0) return kTasksMax;
  auto fits = [&](rlim_t most) {
    const rlimit limit{std::min(most, kept.rlim_max), kept.rlim_max};
    if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return false;
    const pid_t tried = ::fork();
    if (tried == 0) ::_exit(0);
    return tried > 0 && ::waitpid(tried, nullptr, 0) == tried;
  };
  if (fits(1)) return kTasksMax;  // This is one already: for a privileged user nothing is counted.
  rlim_t least = 2;               // The least limit with which one more fits.
  while (least < kTasksMax && !fits(least)) least *= 2;
  for (rlim_t too_few = least / 2; least - too_few > 1;) {
    const rlim_t middle = too_few + (least - too_few) / 2;
    (fits(middle) ? least : too_few) = middle;
  }
  (void)::setrlimit(RLIMIT_NPROC, &kept);
  return least - 1;
}

class LandlockInit {
 public:
  LandlockInit(const SandboxPlan& plan, AgentProcess& agent, std::vector<pid_t> spared)
      : plan_(plan), agent_(agent), spared_(std::move(spared)) {}

  Status StartAgent();
  void KillAll() const;

 private:
  Status BecomeAgent();
  Status Confine();  // Runs in the agent's process.

  const SandboxPlan& plan_;
  AgentProcess& agent_;
  std::vector<pid_t> spared_;
  bool scoped_ = false;  // Signals of this process reach the sandbox alone.
};

Status LandlockInit::BecomeAgent() {
  if (!plan_.as_root) return Ok();
  if (::setgroups(0, nullptr) != 0) return Errno("setgroups");
  if (::setresgid(plan_.host_gid, plan_.host_gid, plan_.host_gid) != 0) return Errno("setresgid");
  // While CAP_SETPCAP is there: nothing that the agent starts can have a capability.
  TRY(sys::DropCapabilities(1U << CAP_SETUID));
  if (::setresuid(plan_.host_uid, plan_.host_uid, plan_.host_uid) != 0) return Errno("setresuid");
  return Ok();
}

Status LandlockInit::Confine() {
  TRY(LimitFileSize(plan_.limits, plan_.limits.disk_bytes));
  // Counted for the user: that of a root's run has no other process. Where a cgroup counts, it has
  // to refuse first, since it alone remembers that it did.
  if (plan_.as_root && plan_.limits.pids > 0) {
    const auto most = static_cast<rlim_t>(plan_.limits.pids);
    TRY(SetLimit(RLIMIT_NPROC, plan_.counts_tasks ? most : 2 * most));
  } else if (plan_.counts_tasks) {
    // The user's others may become more meanwhile: they are not to keep the agent from its share.
    const auto most = static_cast<rlim_t>(plan_.limits.pids);
    TRY(SetLimit(RLIMIT_NPROC, TasksOfUser() + most + std::max(most, kUsersMore)));
  }
  TRY(BecomeAgent());
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Errno("prctl(PR_SET_PDEATHSIG)");
  TRY(sys::ForgoNewPrivileges());
  TRY(sys::KeepCapabilities(0));
  Fd ruleset =
      TRY(BuildLandlock(plan_.landlock, plan_.landlock_required, sys::landlock::kConnectTcp));
  if (!ruleset.valid()) return Error{Code::kUnsupported, "this kernel does not support Landlock"};
  TRY(sys::landlock::Restrict(ruleset.get()));
  SharedHost shared;
  shared.shares_user = !plan_.as_root;
  shared.truncates = sys::landlock::Abi() < 3;
  shared.signals = !plan_.as_root && sys::landlock::Abi() < 6;
  shared.spared = spared_;
  for (pid_t process : spared_) {
    pid_t group = ::getpgid(process);
    if (group > 1) shared.spared_groups.push_back(group);
  }
  Processors processors = plan_.shared_host().pinned ? Processors::kPinned : Processors::kFree;
  std::vector<sock_filter> filter = TRY(BuildFilter(Connects::kBrokered, processors, &shared));
  Result<Fd> calls = ApplyFilter(filter, Connects::kBrokered);
  if (!calls.ok()) {
    Error error = std::move(calls).error();
    error.code = Code::kUnsupported;
    error.what = "seccomp user notification: " + error.what;
    return error;
  }
  return agent_.SendFd(ControlKind::kWatch, calls.value().get());
}

Status LandlockInit::StartAgent() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Errno("prctl(PR_SET_CHILD_SUBREAPER)");
  spared_.push_back(::getpid());
  TRY(sys::ForgoNewPrivileges());
  // The agent's own ruleset lies in this one: it cannot signal this process, and this one nothing
  // but the agent's.
  Fd scope = TRY(sys::landlock::CreateSignalRuleset());
  scoped_ = scope.valid();
  if (scoped_) TRY(sys::landlock::Restrict(scope.get()));
  TRY(agent_.Start([this] { return Confine(); }));
  if (plan_.as_root) {
    // The right to read the paths of programs of another user.
    const uint32_t looks = agent_.records_programs() ? 1U << CAP_SYS_PTRACE : 0;
    TRY(sys::DropCapabilities(1U << CAP_SETUID | 1U << CAP_KILL | looks));
  }
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  return agent_.SendFd(ControlKind::kStarted, -1);
}

// kill(-1) is one step for the kernel: nothing is forked in between. It reaches all that this
// process may signal, so it is made where that is the sandbox alone.
void LandlockInit::KillAll() const {
  for (int round = 0; round < kRounds; ++round) {
    if (scoped_) {
      (void)::kill(-1, SIGKILL);
    } else if (plan_.as_root) {
      KillUser(plan_.host_uid);
    } else {
      KillDescendants({});
    }
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    if (Descendants(::getpid()).empty()) return;
  }
}

}  // namespace

void RunLandlockInit(const SandboxPlan& plan, AgentResources resources, std::vector<pid_t> spared) {
  Status joined = JoinCgroups(resources.groups);
  if (!BeginFirstProcess(&resources, {}).ok()) ::_exit(1);
  (void)::setsid();
  int control = resources.control.get();
  AgentProcess agent(plan, std::move(resources));
  LandlockInit init(plan, agent, std::move(spared));
  if (!joined.ok()) agent.Report(joined.error());
  if (!joined.ok() || !Expect(control, ControlKind::kStartAgent)) ::_exit(1);
  Status status = init.StartAgent();
  if (status.ok()) {
    agent.Reap();
  } else {
    agent.Report(status.error());
  }
  init.KillAll();
  ::_exit(status.ok() ? 0 : 1);
}

}  // namespace sandbox
