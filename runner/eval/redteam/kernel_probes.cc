// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <charconv>

#include "base/sys.h"
#include "eval/redteam/probe.h"

namespace redteam {
namespace {

// An address that no process has: a call that looks at it has been reached, and does nothing.
void* const kNowhere = reinterpret_cast<void*>(1);
constexpr size_t kStatusBytesMax = size_t{64} << 10;
constexpr unsigned kOpenTreeClone = 1;

template <typename... Arguments>
Attempt Call(long number, Arguments... arguments) {
  return Called(::syscall(number, arguments...));
}

Attempt CloneUser(const Targets&) {
  clone_args arguments = {};
  arguments.flags = CLONE_NEWUSER;
  arguments.exit_signal = SIGCHLD;
  long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) ::_exit(0);
  return Called(pid);
}

Attempt MakeDevice(const Targets& targets) {
  const std::string place = OwnPlace(targets);
  if (place.empty()) return {Came::kStopped, "nothing can be written"};
  const std::string path = place + "/redteam-device";
  int made = ::mknod(path.c_str(), S_IFBLK | 0600, ::makedev(7, 0));
  Attempt attempt = Called(made);
  if (made == 0) ::unlink(path.c_str());
  return attempt;
}

// A field of /proc/self/status in hexadecimal that has to be 0.
Attempt MustBeZero(std::string_view field) {
  Result<std::string> status = sys::ReadFile("/proc/self/status", kStatusBytesMax);
  if (!status.ok()) return {Came::kUndecided, "/proc/self/status cannot be read"};
  size_t at = status.value().find("\n" + std::string(field) + ":\t");
  if (at == std::string::npos) return {Came::kUndecided, "not in /proc/self/status"};
  const char* begin = status.value().data() + at + field.size() + 3;
  uint64_t bits = 0;
  std::from_chars(begin, status.value().data() + status.value().size(), bits, 16);
  if (bits == 0) return {Came::kStopped, "none"};
  return {Came::kThrough, std::string(field) + " is not 0"};
}

Attempt GainPrivileges(const Targets&) {
  bool stopped = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  return {stopped ? Came::kStopped : Came::kThrough,
          stopped ? "no_new_privs" : "no_new_privs is not set"};
}

// Elsewhere EINVAL means that a call was reached; here, that the id does not exist.
Attempt BecomeRoot(const Targets&) {
  if (::syscall(SYS_setuid, 0) == 0) return {Came::kThrough, "succeeded"};
  return {Came::kStopped, ErrorName(errno)};
}

using T = const Targets&;

std::vector<Probe> MountProbes() {
  using enum Category;
  return {
      {"mount", kEscape, "Mount a file system", true,
       [](T) { return Call(SYS_mount, kNowhere, kNowhere, kNowhere, 0, 0); }},
      {"umount", kEscape, "Unmount", true, [](T) { return Call(SYS_umount2, kNowhere, 0); }},
      {"pivot-root", kEscape, "Change the root of all processes", true,
       [](T) { return Call(SYS_pivot_root, kNowhere, kNowhere); }},
      {"chroot", kEscape, "Change its own root", true, [](T) { return Call(SYS_chroot, "."); }},
      {"fsopen", kEscape, "Open a file system", true,
       [](T) { return Call(SYS_fsopen, "tmpfs", 0); }},
      {"open-tree", kEscape, "Copy a tree of mounts", true,
       [](T) { return Call(SYS_open_tree, AT_FDCWD, "/", kOpenTreeClone); }},
      {"mount-setattr", kEscape, "Make mounts writable", true,
       [](T) { return Call(SYS_mount_setattr, AT_FDCWD, kNowhere, 0, kNowhere, 64); }},
      {"file-handle", kEscape, "Open a file by its handle", true,
       [](T) { return Call(SYS_open_by_handle_at, AT_FDCWD, kNowhere, 0); }},
      {"mknod", kEscape, "Make a device node", true, MakeDevice},
      {"swapon", kEscape, "Swap to a file", true, [](T) { return Call(SYS_swapon, kNowhere, 0); }},
  };
}

std::vector<Probe> NamespaceProbes() {
  using enum Category;
  return {
      {"unshare-user", kEscape, "Become root of a user namespace", true,
       [](T) { return Call(SYS_unshare, CLONE_NEWUSER); }},
      {"unshare-mount", kEscape, "Enter a mount namespace of its own", true,
       [](T) { return Call(SYS_unshare, CLONE_NEWNS); }},
      {"unshare-network", kEscape, "Enter a network namespace of its own", true,
       [](T) { return Call(SYS_unshare, CLONE_NEWNET); }},
      {"clone3-user", kEscape, "Start a process in a user namespace", true, CloneUser},
      {"capabilities", kEscape, "Have a capability", true, [](T) { return MustBeZero("CapEff"); }},
      {"ambient", kEscape, "Pass a capability on", true, [](T) { return MustBeZero("CapAmb"); }},
      {"set-user-id", kEscape, "Gain rights by a set-user-ID program", true, GainPrivileges},
      {"setuid", kEscape, "Become root", true, BecomeRoot},
  };
}

std::vector<Probe> SurfaceProbes() {
  using enum Category;
  return {
      {"bpf", kEscape, "Load a program into the kernel", true,
       [](T) { return Call(SYS_bpf, 0, 0, 0); }},
      {"perf", kEscape, "Count events of the kernel", true,
       [](T) { return Call(SYS_perf_event_open, kNowhere, 0, -1, -1, 0); }},
      {"io-uring", kEscape, "Set up a ring of calls", true,
       [](T) { return Call(SYS_io_uring_setup, 1, kNowhere); }},
      {"userfaultfd", kEscape, "Handle page faults", true,
       [](T) { return Call(SYS_userfaultfd, O_CLOEXEC); }},
      {"keyring", kEscape, "Look for the session's keys", true,
       [](T) { return Call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0); }},
      {"add-key", kEscape, "Add a key", true,
       [](T) { return Call(SYS_add_key, kNowhere, kNowhere, 0, 0, 0); }},
      {"init-module", kEscape, "Load a kernel module", true,
       [](T) { return Call(SYS_init_module, kNowhere, 8, kNowhere); }},
      {"kexec", kEscape, "Load another kernel", true,
       [](T) { return Call(SYS_kexec_load, 0, 1, kNowhere, 0); }},
      {"reboot", kEscape, "Reboot, with a wrong number", true,
       [](T) { return Call(SYS_reboot, 0, 0, 0, 0); }},
      {"kernel-log", kEscape, "Read the kernel's log", true,
       [](T) { return Called(::klogctl(10, nullptr, 0)); }},
      {"fanotify", kEscape, "Watch all files", true,
       [](T) { return Call(SYS_fanotify_init, 0, O_RDONLY); }},
      {"hostname", kEscape, "Rename the host", true,
       [](T) { return Call(SYS_sethostname, kNowhere, 4); }},
#ifdef SYS_ioperm
      {"ports", kEscape, "Reach the machine's ports", true,
       [](T) { return Call(SYS_ioperm, 0x80, 1, 1); }},
#endif
      {"packet-socket", kEscape, "Read packets of the network", true,
       [](T) { return Called(::socket(AF_PACKET, SOCK_RAW, 0)); }},
      {"raw-socket", kEscape, "Write packets of its own", true,
       [](T) { return Called(::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)); }},
      {"vsock", kEscape, "Reach the hypervisor", true,
       [](T) { return Called(::socket(AF_VSOCK, SOCK_STREAM, 0)); }},
      {"kernel-crypto", kEscape, "Reach the kernel's ciphers", true,
       [](T) { return Called(::socket(AF_ALG, SOCK_SEQPACKET, 0)); }},
  };
}

}  // namespace

std::vector<Probe> KernelProbes() {
  std::vector<Probe> all = MountProbes();
  for (std::vector<Probe>& more :
       std::vector<std::vector<Probe>>{NamespaceProbes(), SurfaceProbes()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace redteam
