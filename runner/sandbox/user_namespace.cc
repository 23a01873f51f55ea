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
namespace {

Status WriteMap(pid_t pid, const char* file, const std::string& text) {
  std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  Fd fd = TRY(sys::Open(path, O_WRONLY));
  // One write: the kernel takes a map whole or not at all.
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Errno(path);
  }
  return Ok();
}

std::string Render(IdMapping mapping) {
  return std::to_string(mapping.inner) + " " + std::to_string(mapping.outer) + " 1\n";
}

// A kernel setting, "" when this kernel has none of that name.
std::string Setting(const std::string& path) {
  Result<std::string> text = sys::ReadFile(path, 64);
  return text.ok() ? std::move(text).value() : "";
}

// What to type on this host, as far as the host tells.
std::string Remedy() {
  if (Setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").starts_with("1")) {
    return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (Setting("/proc/sys/kernel/unprivileged_userns_clone").starts_with("0")) {
    return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (Setting("/proc/sys/user/max_user_namespaces").starts_with("0")) {
    return "sudo sysctl -w user.max_user_namespaces=15000";
  }
  if (sys::Exists("/.dockerenv")) {
    return "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined "
           "--security-opt apparmor=unconfined ...";
  }
  if (sys::Exists("/run/.containerenv")) {
    return "podman run --security-opt unmask=ALL ...";
  }
  return "";
}

}  // namespace

Status MapIds(pid_t pid, IdMapping uid, IdMapping gid, bool as_root) {
  // An ordinary user may map its group only after giving up setgroups for good.
  if (!as_root) TRY(WriteMap(pid, "setgroups", "deny"));
  TRY(WriteMap(pid, "uid_map", Render(uid)));
  return WriteMap(pid, "gid_map", Render(gid));
}

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

Error NamespaceRefused(const char* call, int saved_errno) {
  Error error = Errno(call, saved_errno);
  error.code = Code::kUnsupported;
  error.hint = Remedy();
  return error;
}

Error ExplainFault(Error error) {
  bool refused =
      error.what.ends_with("Operation not permitted") || error.what.ends_with("Permission denied");
  bool building = error.what.starts_with("mount") || error.what.starts_with("making mounts") ||
                  error.what.starts_with("bringing") || error.what.starts_with("adding") ||
                  error.what.starts_with("sethostname") || error.what.starts_with("pivot_root");
  if (refused && building) {
    error.code = Code::kUnsupported;
    error.hint = Remedy();
  }
  return error;
}

}  // namespace sandbox
