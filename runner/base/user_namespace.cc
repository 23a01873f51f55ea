// SPDX-License-Identifier: Apache-2.0
#include "base/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/sys.h"

namespace sys {
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

// A pod without a token has the cluster's address all the same; its container may have a file of
// its engine's, too.
bool IsPod() {
  return sys::Exists("/var/run/secrets/kubernetes.io") ||
         sys::Environment("KUBERNETES_SERVICE_HOST").has_value();
}

// Returns the setting of this kernel that keeps namespaces from ordinary users, as sysctl(8) takes
// it; "" if none does.
std::string KernelSetting() {
  if (Setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").starts_with("1")) {
    return "kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (Setting("/proc/sys/kernel/unprivileged_userns_clone").starts_with("0")) {
    return "kernel.unprivileged_userns_clone=1";
  }
  if (Setting("/proc/sys/user/max_user_namespaces").starts_with("0")) {
    return "user.max_user_namespaces=15000";
  }
  return "";
}

std::string PodRemedy(const std::string& kernel_setting) {
  std::string text =
      "in the pod's specification: hostUsers: false, and in the container's securityContext: ";
  if (::geteuid() == 0) text += "runAsUser: 1000, ";
  text += "procMount: Unmasked, seccompProfile: {type: Unconfined}";
  // AppArmor's labels end so, and no other module's.
  const bool apparmor = Setting("/proc/self/attr/current").find(" (enforce)") != std::string::npos;
  if (apparmor) text += ", appArmorProfile: {type: Unconfined}";
  if (!kernel_setting.empty()) text += "; on the node: sysctl -w " + kernel_setting;
  return text;
}

}  // namespace

std::string NamespaceRemedy(bool from_root) {
  const std::string setting = KernelSetting();
  if (IsPod()) return PodRemedy(setting);
  if (!setting.empty()) return "sudo sysctl -w " + setting;
  const std::string user = from_root ? "--user 1000:1000 " : "";
  if (sys::Exists("/.dockerenv")) {
    return "docker run " + user +
           "--security-opt seccomp=unconfined --security-opt systempaths=unconfined "
           "--security-opt apparmor=unconfined ...";
  }
  if (sys::Exists("/run/.containerenv")) {
    return "podman run " + user + "--security-opt unmask=ALL --security-opt seccomp=unconfined ...";
  }
  return "";
}

Status MapIds(pid_t pid, IdMapping uid, IdMapping gid, bool as_root) {
  // An ordinary user may map its group only after giving up setgroups for good.
  if (!as_root) TRY(WriteMap(pid, "setgroups", "deny"));
  TRY(WriteMap(pid, "uid_map", Render(uid)));
  return WriteMap(pid, "gid_map", Render(gid));
}

Error NamespaceErrno(std::string_view call, int saved_errno) {
  Error error = Errno(call, saved_errno);
  error.kind = ErrorKind::kNamespace;
  return error;
}

Error NamespaceRefused(const char* call, int saved_errno) {
  Error error = Errno(call, saved_errno);
  error.code = Code::kUnsupported;
  error.hint = NamespaceRemedy();
  return error;
}

}  // namespace sys
