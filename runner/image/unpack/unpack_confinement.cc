// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/unpack_confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/fd.h"
#include "base/free_with.h"
#include "base/privileges.h"
#include "base/sys.h"
#include "base/user_namespace.h"

namespace image {
namespace {

// zstd's window and our buffers, and room for glibc's arenas; a layer that wants more gets none.
[[maybe_unused]] constexpr rlim_t kMemoryBytesMax = rlim_t{2} << 30;
constexpr rlim_t kFilesMax = 1024;  // A descriptor for each directory of the deepest path, twice.

Status EnterDirectory(int directory) {
  // A copy of the mounts takes the working directory along, and no other descriptor.
  if (::fchdir(directory) != 0) return Errno("fchdir");
  if (::unshare(CLONE_NEWNS) != 0) return sys::NamespaceRefused("unshare(CLONE_NEWNS)", errno);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return sys::NamespaceRefused("making mounts private", errno);
  }
  Fd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!tree.valid()) return sys::NamespaceRefused("open_tree", errno);
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) !=
      0) {
    return sys::NamespaceRefused("mount_setattr", errno);
  }
  if (::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return sys::NamespaceRefused("move_mount", errno);
  }
  if (::fchdir(tree.get()) != 0) return Errno("fchdir");
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return sys::NamespaceRefused("pivot_root", errno);
  if (::umount2(".", MNT_DETACH) != 0) return sys::NamespaceRefused("umount2", errno);
  if (::chdir("/") != 0) return Errno("chdir");
  return Ok();
}

Status Limit(int resource, rlim_t most) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return Errno("getrlimit");
  limit.rlim_cur = limit.rlim_max = std::min(most, limit.rlim_max);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return Errno("setrlimit");
  return Ok();
}

// Landlock is a second barrier here: the root already is this directory. So a kernel without it
// gives false, which is not a reason to refuse.
Result<bool> RestrictFiles() {
  using namespace sys::landlock;
  Fd ruleset = TRY(CreateRuleset(kBindTcp | kConnectTcp));
  if (!ruleset.valid()) return false;
  Fd root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  TRY(Allow(ruleset, root.get(), kAllFiles & ~kExecute));
  TRY(Restrict(ruleset.get()));
  return true;
}

[[maybe_unused]] constexpr auto kAllowed = std::to_array<int>({
    SCMP_SYS(brk),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(close),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(fchmod),
    SCMP_SYS(fcntl),
    SCMP_SYS(fgetxattr),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(fstat),
    SCMP_SYS(ftruncate),
    SCMP_SYS(futex),
    SCMP_SYS(getdents64),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(gettid),
    SCMP_SYS(linkat),
    SCMP_SYS(lseek),
    SCMP_SYS(madvise),
    SCMP_SYS(mkdirat),
    SCMP_SYS(mknodat),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(newfstatat),
    SCMP_SYS(openat),
    SCMP_SYS(openat2),
    SCMP_SYS(poll),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(read),
    SCMP_SYS(readlinkat),
    SCMP_SYS(recvmsg),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sendmsg),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(symlinkat),
    SCMP_SYS(unlinkat),
    SCMP_SYS(utimensat),
    SCMP_SYS(write),
});

[[maybe_unused]] Status FilterSystemCalls() {
  std::unique_ptr<void, FreeWith<seccomp_release>> filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (!filter) return Error{Code::kUnsupported, "seccomp_init failed"};
  (void)::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  int bad = 0;
  for (int call : kAllowed) bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0);
  constexpr uint64_t kProtExec = 4;
  for (int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, kProtExec, 0));
  }
  // Threads, not processes. glibc asks for clone3 first, whose flags a filter cannot see.
  bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  for (int call : {SCMP_SYS(clone3), SCMP_SYS(prctl)}) {
    bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), call, 0);
  }
  if (bad != 0) return Error{Code::kUnsupported, "seccomp_rule_add failed"};
  int loaded = ::seccomp_load(filter.get());
  if (loaded != 0) return Error{Code::kUnsupported, Errno("seccomp_load", -loaded).what};
  return Ok();
}

}  // namespace

Result<std::vector<std::string>> ConfineUnpacking(int directory) {
  ::umask(0);
  // Refused, with nothing lost, where the caller's groups could not be given up.
  (void)::setgroups(0, nullptr);
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return Errno("setresuid");
  // Set after the change of ids, which clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Errno("prctl(PR_SET_PDEATHSIG)");
  TRY(EnterDirectory(directory));
  // setxattr of security.capability, and modes with setgid: all else the owner of files may do.
  TRY(sys::DropCapabilities(1U << CAP_SETFCAP | 1U << CAP_FSETID));
  TRY(Limit(RLIMIT_CORE, 0));
  TRY(Limit(RLIMIT_NOFILE, kFilesMax));
  TRY(sys::ForgoNewPrivileges());
  std::vector<std::string> waivers;
  bool restricted = TRY(RestrictFiles());
  if (!restricted)
    waivers.push_back("unpacked without Landlock, which this kernel does not support");
#if !defined(__SANITIZE_ADDRESS__)
  // AddressSanitizer's runtime maps terabytes and makes calls of its own; these belong to the
  // program as shipped.
  TRY(Limit(RLIMIT_AS, kMemoryBytesMax));
  TRY(FilterSystemCalls());
#endif
  return waivers;
}

}  // namespace image
