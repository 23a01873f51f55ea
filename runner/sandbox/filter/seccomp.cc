// SPDX-License-Identifier: Apache-2.0
#include "sandbox/filter/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "base/fd.h"
#include "base/free_with.h"
#include "base/sys.h"
#include "sandbox/call/rename_watch.h"
#include "sandbox/filter/rules.h"
#include "sandbox/filter/shared_host_rules.h"

namespace sandbox {
namespace {

// A refused call is told what programs have a second way for. That is EPERM for most, which these
// calls tell a process without a privilege; the others are in kOtherwiseDenied.

// OpenShell's unconditional list (its process supervisor's second filter), but for memfd_create,
// pidfd_open and pidfd_send_signal, which are below.
constexpr auto kOpenShellDenied = std::to_array<int>({
    SCMP_SYS(ptrace),
    SCMP_SYS(bpf),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(setns),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(perf_event_open),
});

// Ours: nothing a build or a test needs, each once a way into the kernel or past a namespace.
constexpr auto kAlsoDenied = std::to_array<int>({
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(chroot),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(vhangup),
    SCMP_SYS(fanotify_init),
});

// What Owners::kFaked answers with success.
constexpr auto kOfOwners = std::to_array<int>({
    SCMP_SYS(chown),
    SCMP_SYS(fchown),
    SCMP_SYS(lchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(setuid),
    SCMP_SYS(setgid),
    SCMP_SYS(setreuid),
    SCMP_SYS(setregid),
    SCMP_SYS(setresuid),
    SCMP_SYS(setresgid),
    SCMP_SYS(setgroups),
    SCMP_SYS(setfsuid),
    SCMP_SYS(setfsgid),
    SCMP_SYS(capset),
});

struct Told {
  int call;
  uint32_t error;
};

// ENOSYS: the kernel is older than the call, or was built without it. EOPNOTSUPP: what an overlay
// answers.
constexpr auto kOtherwiseDenied = std::to_array<Told>({
    {SCMP_SYS(memfd_create), ENOSYS},  // OpenShell's. Wasmtime ends at any other error.
    {SCMP_SYS(memfd_secret), ENOSYS},  // Its pages count in no process, and outlive their mapping.
    {SCMP_SYS(keyctl), ENOSYS},        // Kerberos and PAM then do without a ring.
    {SCMP_SYS(add_key), ENOSYS},
    {SCMP_SYS(request_key), ENOSYS},
    {SCMP_SYS(kcmp), ENOSYS},
    {SCMP_SYS(process_madvise), ENOSYS},  // Allocators then use madvise.
    {SCMP_SYS(migrate_pages), ENOSYS},    // A kernel without NUMA.
    {SCMP_SYS(move_pages), ENOSYS},
    {SCMP_SYS(lookup_dcookie), ENOSYS},  // Linux has removed these two.
    {SCMP_SYS(nfsservctl), ENOSYS},
    {SCMP_SYS(name_to_handle_at), EOPNOTSUPP},
});

// open_tree(2) that also changes mounts; by number, since libseccomp does not know it.
constexpr int kOpenTreeAttr = 467;

// Each call up to file_setattr (Linux 6.17) was looked at. One that Linux has added since is told
// to be missing, as on an older kernel, until it has been.
constexpr int kUndecidedFirst = 470;
constexpr int kUndecidedLast = 511;  // x86-64 goes on at 512 with the calls of x32.

// Every other socket family reaches code that few have looked at, or past the network namespace
// (AF_VSOCK).
constexpr auto kFamilies =
    std::to_array<uint64_t>({AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK});
constexpr uint64_t kFamiliesSize = 64;  // A power of 2 that AF_MAX does not exceed.
static_assert(AF_MAX <= kFamiliesSize);

// File systems' own requests of ioctl(2), by their type. Landlock does not look at them, and some
// change what a descriptor only reads: btrfs makes, removes and copies subvolumes, with what is
// hidden in them.
constexpr uint64_t kBtrfs = 0x94;
constexpr uint64_t kBcachefs = 0xbc;
constexpr uint64_t kF2fs = 0xf5;
// FICLONE, FICLONERANGE and FIDEDUPERANGE, with which files are copied.
constexpr auto kCloning = std::to_array<uint64_t>({9, 13, 54});
using Context = std::unique_ptr<void, FreeWith<seccomp_release>>;

// The kernel itself refuses what is larger.
void DenyFamilies(Rules& rules, int call) {
  DenyOthers(rules, call, 0, {0xffffffff, 0, kFamiliesSize}, kFamilies, EPERM);
}

// If the host gives a core to a program, that runs with the host's rights; only a limit of 1 keeps
// it from being started (core(5)). A program that wants no core sets its limit to 0, and is
// answered that it was done.
void KeepCoreLimit(Rules& rules, bool brokered) {
  constexpr uint32_t kDone = 0;
  const scmp_arg_cmp core = IntArgument(1, RLIMIT_CORE);
  const scmp_arg_cmp sets = Argument(2, SCMP_CMP_NE, 0);
  rules.DenyWhere(SCMP_SYS(setrlimit), std::array{IntArgument(0, RLIMIT_CORE)}, kDone);
  rules.DenyWhere(SCMP_SYS(prlimit64),
                  std::array{IntArgument(0, 0), core, sets, Argument(3, SCMP_CMP_EQ, 0)}, kDone);
  rules.DenyWhere(SCMP_SYS(prlimit64), std::array{core, sets, Argument(3, SCMP_CMP_NE, 0)});
  // On a shared host, no limit of another is set: AddSharedHostRules().
  if (!brokered) {
    rules.DenyWhere(SCMP_SYS(prlimit64), std::array{Argument(0, SCMP_CMP_NE, 0), core, sets});
  }
}

void DenySockets(Rules& rules) {
  // As where the kernel lacks the protocol: programs that would write to the audit log go on.
  rules.DenyWhere(SCMP_SYS(socket),
                  std::array{IntArgument(0, AF_NETLINK), Argument(2, SCMP_CMP_NE, 0)},
                  EAFNOSUPPORT);
  // A raw socket needs a capability the agent lacks; said here too, so that one bug is not enough.
  rules.DenyWhere(SCMP_SYS(socket), std::array{IntArgument(0, AF_INET),
                                               Argument(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW)});
  rules.DenyWhere(SCMP_SYS(socket), std::array{IntArgument(0, AF_INET6),
                                               Argument(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW)});
  // The oldest way to an AF_PACKET socket.
  rules.DenyWhere(SCMP_SYS(socket), std::array{IntArgument(0, AF_INET),
                                               Argument(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_PACKET)});
}

void AddRules(Rules& rules, bool brokered) {
  constexpr int kFirst = 1;
  ProtectProcess(rules, kFirst);
  for (int call : kOpenShellDenied) rules.Deny(call);
  for (int call : kAlsoDenied) rules.Deny(call);
  for (const Told& told : kOtherwiseDenied) rules.Deny(told.call, told.error);
  // In a namespace, all processes but the first are the agent's.
  if (!brokered) rules.DenyWhere(SCMP_SYS(pidfd_open), std::array{IntArgument(0, kFirst)});
  rules.Deny(kOpenTreeAttr);
  for (int call = kUndecidedFirst; call <= kUndecidedLast; ++call) rules.Deny(call, ENOSYS);
  rules.Deny(SCMP_SYS(clone3), ENOSYS);
  if (!brokered) DenyFamilies(rules, SCMP_SYS(socket));
  DenyFamilies(rules, SCMP_SYS(socketpair));
  if (!brokered) DenySockets(rules);
  KeepCoreLimit(rules, brokered);
  DenyRequests(rules, kBtrfs, {kCloning.begin(), kCloning.end()});
  for (uint64_t type : {kBcachefs, kF2fs}) DenyRequests(rules, type, {});
  // A lease keeps other programs that open the file waiting, also outside.
  rules.DenyWhere(SCMP_SYS(fcntl), std::array{IntArgument(1, F_SETLEASE)}, EINVAL);
  // The C library's fexecve() then starts /proc/self/fd/N, which has a path to be judged by.
  rules.DenyWhere(SCMP_SYS(execveat),
                  std::array{Argument(4, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, AT_EMPTY_PATH)},
                  ENOSYS);
  constexpr uint64_t kNewNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  for (uint64_t flag = 1; flag != 0 && flag <= kNewNamespaces; flag <<= 1) {
    if ((kNewNamespaces & flag) == 0) continue;
    rules.DenyWhere(SCMP_SYS(unshare), std::array{Argument(0, SCMP_CMP_MASKED_EQ, flag, flag)});
    rules.DenyWhere(SCMP_SYS(clone), std::array{Argument(0, SCMP_CMP_MASKED_EQ, flag, flag)});
  }
  // Nothing that is started escapes the record of programs (ProgramRecord).
  rules.DenyWhere(SCMP_SYS(clone),
                  std::array{Argument(0, SCMP_CMP_MASKED_EQ, CLONE_UNTRACED, CLONE_UNTRACED)});
  rules.DenyWhere(SCMP_SYS(seccomp), std::array{IntArgument(0, SECCOMP_SET_MODE_FILTER)});
  rules.DenyWhere(SCMP_SYS(prctl), std::array{IntArgument(0, PR_SET_SECCOMP)});
  // connect(2) is the one way to connect: what is looked at there would not see this one. Without
  // TCP Fast Open in the kernel the answer is the same, and programs then connect first.
  auto fast_open = [](unsigned index) { return std::array{Flag(index, MSG_FASTOPEN)}; };
  rules.DenyWhere(SCMP_SYS(sendto), fast_open(3), EOPNOTSUPP);
  rules.DenyWhere(SCMP_SYS(sendmsg), fast_open(2), EOPNOTSUPP);
  rules.DenyWhere(SCMP_SYS(sendmmsg), fast_open(3), EOPNOTSUPP);
  // Pushing keystrokes into a terminal that another program reads; another line discipline, for
  // which the kernel may load a module.
  constexpr int kTiocsti = 0x5412;
  constexpr int kTioclinux = 0x541C;
  constexpr int kTiocsetd = 0x5423;
  for (int request : {kTiocsti, kTioclinux, kTiocsetd}) {
    rules.DenyWhere(SCMP_SYS(ioctl), std::array{IntArgument(1, request)});
  }
}

void FakeOwners(Rules& rules) {
  constexpr uint32_t kDone = 0;
  for (int call : kOfOwners) rules.Deny(call, kDone);
  for (mode_t kind : {S_IFCHR, S_IFBLK}) {
    rules.DenyWhere(SCMP_SYS(mknod), std::array{Argument(1, SCMP_CMP_MASKED_EQ, S_IFMT, kind)},
                    kDone);
    rules.DenyWhere(SCMP_SYS(mknodat), std::array{Argument(2, SCMP_CMP_MASKED_EQ, S_IFMT, kind)},
                    kDone);
  }
}

}  // namespace

Result<std::vector<sock_filter>> BuildFilter(Connects connects, Processors processors,
                                             const SharedHost* shared, Owners owners) {
  Context context(::seccomp_init(SCMP_ACT_ALLOW));
  if (context == nullptr) return Error{Code::kIo, "seccomp_init failed"};
  // 32-bit and x32 calls would go around a filter written for this architecture: refused outright.
  if (::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0) {
    return Error{Code::kIo, "seccomp_attr_set failed"};
  }
  // A binary tree instead of a list: the filter runs on every system call of every build.
  (void)::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  Rules rules(context.get());
  AddRules(rules, connects == Connects::kBrokered);
  if (connects != Connects::kFree) rules.Notify(SCMP_SYS(connect));
  if (connects == Connects::kWatched) {
    for (int call : RenameCalls()) rules.Notify(call);
  }
  if (shared != nullptr) AddSharedHostRules(rules, *shared);
  if (owners == Owners::kFaked) FakeOwners(rules);
  if (processors == Processors::kPinned) rules.Deny(SCMP_SYS(sched_setaffinity));
  if (rules.status() < 0) return Errno("seccomp_rule_add", -rules.status());

  Fd file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file.valid()) return Errno("memfd_create");
  int rc = ::seccomp_export_bpf(context.get(), file.get());
  if (rc < 0) return Errno("seccomp_export_bpf", -rc);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Errno("lseek");
  constexpr size_t kFilterBytesMax = BPF_MAXINSNS * sizeof(sock_filter);
  std::string bytes = TRY(sys::ReadAll(file.get(), kFilterBytesMax));
  std::vector<sock_filter> filter(bytes.size() / sizeof(sock_filter));
  bytes.copy(reinterpret_cast<char*>(filter.data()), bytes.size());
  return filter;
}

Result<Fd> ApplyFilter(const std::vector<sock_filter>& filter, Connects connects) {
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size());
  program.filter = const_cast<sock_filter*>(filter.data());
  // A call that the supervisor has begun to look at is not begun anew for every signal: Go's
  // runtime sends itself a hundred a second.
  unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  if (connects == Connects::kFree) flags = 0;
  long listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (listener < 0 && errno == EINVAL && connects == Connects::kBrokered) {
    // Before Linux 5.19 such a call may be asked for twice: the second time it is connected.
    flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
    listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  }
  if (listener < 0) return Errno("seccomp");
  return connects == Connects::kFree ? Fd() : Fd(static_cast<int>(listener));
}

}  // namespace sandbox
