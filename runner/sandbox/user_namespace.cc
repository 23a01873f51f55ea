// SPDX-License-Identifier: Apache-2.0
#include "sandbox/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/sys.h"

namespace sandbox {

Result<Fd> OpenUserNamespace(IdMapping uid, IdMapping gid) {
  auto [wait_read, wait_write] = TRY(sys::Pipe());
  long pid = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return NamespaceRefused("clone(CLONE_NEWUSER)", errno);
  if (pid == 0) {
    // Lives until its maps are written; the descriptor keeps the namespace after that.
    wait_write.Close();
    char byte;
    (void)!::read(wait_read.get(), &byte, 1);
    ::_exit(0);
  }
  Status mapped = MapIds(static_cast<pid_t>(pid), uid, gid, true);
  Result<Fd> fd = sys::Open("/proc/" + std::to_string(pid) + "/ns/user", O_RDONLY);
  wait_write.Close();
  while (::waitpid(static_cast<pid_t>(pid), nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!mapped.ok()) return std::move(mapped).error();
  return fd;
}

Error ExplainFault(Error error) {
  bool refused = error.os_error == EPERM || error.os_error == EACCES;
  if (refused && error.kind == ErrorKind::kNamespace) {
    error.code = Code::kUnsupported;
    error.hint = sys::NamespaceRemedy();
  }
  return error;
}

}  // namespace sandbox
