// SPDX-License-Identifier: Apache-2.0
#include "sandbox/namespace_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "base/sys.h"
#include "base/user_namespace.h"

namespace sandbox {
namespace {

constexpr char kProbeSite[] = "/tmp";  // Covered by a mount in a namespace of the probe's own.

pid_t Fork() {
  return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

int FailureUnless(bool worked) { return worked ? 0 : errno; }

// unshare, not clone: the kernel and every filter of containers treat both alike.
int EnterUser() {
  unsigned uid = ::geteuid();
  unsigned gid = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return errno;
  return sys::MapIds(::getpid(), {0, uid}, {0, gid}, false).ok() ? 0 : EPERM;
}

// AppArmor on Ubuntu gives a user namespace and takes its rights away: that shows at the first
// mount.
int EnterMount() {
  if (::unshare(CLONE_NEWNS) != 0) return errno;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  return FailureUnless(::mount("tmpfs", kProbeSite, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") ==
                       0);
}

int EnterOthers() {
  return FailureUnless(::unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) ==
                       0);
}

int SetHostName() { return FailureUnless(::sethostname("probe", 5) == 0); }

// The new pid namespace begins with the next child. A container hides parts of its /proc, and then
// the kernel mounts no other in it.
int MountProc() {
  if (::unshare(CLONE_NEWPID) != 0) return errno;
  pid_t child = Fork();
  if (child < 0) return errno;
  if (child == 0) {
    bool made = ::mkdir("/tmp/proc", 0755) == 0;
    ::_exit(FailureUnless(made && ::mount("proc", "/tmp/proc", "proc", 0, nullptr) == 0));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

int MountOverlay() {
  for (const char* name : {"/tmp/a", "/tmp/b", "/tmp/seen"}) {
    if (::mkdir(name, 0755) != 0) return errno;
  }
  return FailureUnless(::mount("overlay", "/tmp/seen", "overlay", MS_RDONLY,
                               "lowerdir=/tmp/a:/tmp/b,userxattr") == 0);
}

// Asked of no mount: the answer only says whether the kernel knows the call.
int SetMountAttributes() {
  bool absent = ::syscall(SYS_mount_setattr, -1, "", 0, nullptr, 0) != 0 && errno == ENOSYS;
  return absent ? ENOSYS : 0;
}

constexpr struct {
  const char* name;
  int (*attempt)();
} kSteps[] = {{"user namespaces", EnterUser},
              {"mount namespaces", EnterMount},
              {"network, IPC, UTS and cgroup namespaces", EnterOthers},
              {"host name of its own", SetHostName},
              {"/proc of its own", MountProc},
              {"attributes of mounts (Linux 5.12)", SetMountAttributes},
              {"overlayfs (Linux 5.11)", MountOverlay}};

// Changes the ids as setpriv(1) would, whose next program may write its own id map again.
bool BecomeUser(uid_t user) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
         ::setresuid(user, user, user) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

}  // namespace

Result<std::vector<NamespaceStep>> ProbeNamespaces(std::optional<uid_t> user) {
  auto [read_end, write_end] = TRY(sys::Pipe());
  pid_t child = Fork();
  if (child < 0) return Errno("clone");
  if (child == 0) {
    if (user && !BecomeUser(*user)) ::_exit(1);
    for (const auto& step : kSteps) {
      auto failure = static_cast<char>(step.attempt());
      if (!sys::WriteAll(write_end.get(), {&failure, 1}).ok() || failure != 0) break;
    }
    ::_exit(0);
  }
  write_end.Close();
  Result<std::string> failures = sys::ReadAll(read_end.get(), std::size(kSteps));
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::string codes = TRY(std::move(failures));
  std::vector<NamespaceStep> steps;
  for (size_t i = 0; i < codes.size(); ++i) {
    steps.push_back({kSteps[i].name, static_cast<unsigned char>(codes[i])});
  }
  return steps;
}

std::string RootRemedy() {
  constexpr uid_t kUser = 1000;
  Result<std::vector<NamespaceStep>> steps = ProbeNamespaces(kUser);
  const bool helps =
      steps.ok() && steps.value().size() == std::size(kSteps) && steps.value().back().failure == 0;
  if (!helps) return sys::NamespaceRemedy(true);
  // The report's directory may be root's by now.
  return "setpriv --reuid 1000 --regid 1000 --clear-groups agentic-ci run --report-dir "
         "/tmp/agentic-ci-report ...";
}

}  // namespace sandbox
