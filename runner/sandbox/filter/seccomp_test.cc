// SPDX-License-Identifier: Apache-2.0
#include "sandbox/filter/seccomp.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

namespace sandbox {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;

using Arguments = std::array<uint64_t, 6>;

uint32_t Operand(const sock_filter& step, uint32_t x) {
  return BPF_SRC(step.code) == BPF_X ? x : step.k;
}

bool Holds(const sock_filter& step, uint32_t a, uint32_t x) {
  uint32_t b = Operand(step, x);
  switch (BPF_OP(step.code)) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JSET:
      return (a & b) != 0;
  }
  FAIL("unknown jump " << step.code);
  return false;
}

// The kernel's interpreter for classic BPF, as far as a seccomp filter may use it.
uint32_t Evaluate(const std::vector<sock_filter>& filter, const seccomp_data& data) {
  uint32_t a = 0;
  uint32_t x = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory{};
  for (size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& step = filter[at];
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
        if (BPF_MODE(step.code) == BPF_MEM) {
          a = memory.at(step.k);
        } else {
          REQUIRE(step.k + 4 <= sizeof data);
          std::memcpy(&a, reinterpret_cast<const char*>(&data) + step.k, 4);
        }
        break;
      case BPF_ST:
        memory.at(step.k) = a;
        break;
      case BPF_ALU:
        REQUIRE(BPF_OP(step.code) == BPF_AND);
        a &= Operand(step, x);
        break;
      case BPF_JMP:
        if (BPF_OP(step.code) == BPF_JA) {
          at += step.k;
        } else {
          at += Holds(step, a, x) ? step.jt : step.jf;
        }
        break;
      case BPF_RET:
        return step.k;
      default:
        FAIL("unknown instruction " << step.code);
    }
  }
  FAIL("the program runs over its end");
  return 0;
}

uint32_t AnswerOf(const std::vector<sock_filter>& filter, long call, const Arguments& arguments,
                  uint32_t architecture = kArchitecture) {
  seccomp_data data{};
  data.nr = static_cast<int>(call);
  data.arch = architecture;
  std::copy(arguments.begin(), arguments.end(), data.args);
  return Evaluate(filter, data);
}

uint32_t Answer(long call, const Arguments& arguments = {}, uint32_t architecture = kArchitecture,
                Connects connects = Connects::kFree) {
  static const std::vector<sock_filter> filters[] = {BuildFilter(Connects::kFree).value(),
                                                     BuildFilter(Connects::kWatched).value()};
  return AnswerOf(filters[connects == Connects::kWatched ? 1 : 0], call, arguments, architecture);
}

// In tier landlock.
uint32_t AnswerOnSharedHost(long call, const Arguments& arguments) {
  static const SharedHost shared;
  static const std::vector<sock_filter> filter =
      BuildFilter(Connects::kBrokered, Processors::kFree, &shared).value();
  return AnswerOf(filter, call, arguments);
}

TEST_CASE("On a shared host, no file is opened in a way that Landlock does not look at") {
  constexpr uint32_t kEacces = SECCOMP_RET_ERRNO | EACCES;
  constexpr uint64_t kUnasked = 3;
  for (bool truncates : {false, true}) {
    for (bool shares_user : {false, true}) {
      INFO(truncates << shares_user);
      SharedHost shared;
      shared.truncates = truncates;
      shared.shares_user = shares_user;
      auto filter = BuildFilter(Connects::kBrokered, Processors::kFree, &shared).value();
      auto open = [&](uint64_t flags) {
        uint32_t answer = AnswerOf(filter, SYS_openat, {3, 0, flags});
#ifdef SYS_open
        CHECK(AnswerOf(filter, SYS_open, {0, flags}) == answer);
#endif
        return answer;
      };
      CHECK(AnswerOf(filter, SYS_openat2, {}) == kEnosys);
      for (uint64_t more : {0, O_CLOEXEC, O_NONBLOCK, O_DIRECTORY, O_PATH}) {
        for (uint64_t tty : {0, O_NOCTTY}) {
          CHECK(open(kUnasked | more | tty) == kEacces);
          CHECK(open(kUnasked | more | tty | O_TRUNC) == kEacces);
          const uint32_t taken =
              tty != 0 && shares_user ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
          for (uint64_t mode : {O_RDONLY, O_WRONLY, O_RDWR})
            CHECK(open(mode | more | tty) == taken);
          for (uint64_t mode : {O_WRONLY, O_RDWR})
            CHECK(open(mode | more | tty | O_TRUNC) == taken);
          CHECK(open(O_RDONLY | O_TRUNC | more | tty) == (truncates ? kEacces : taken));
        }
      }
    }
  }
}

TEST_CASE("On a shared host, a file has no attributes by its path") {
  for (long call : std::to_array<long>({SYS_getxattr, SYS_lgetxattr})) {
    CHECK(AnswerOnSharedHost(call, {}) == (SECCOMP_RET_ERRNO | ENODATA));
    CHECK(Answer(call) == SECCOMP_RET_ALLOW);
  }
  for (long call : std::to_array<long>({SYS_listxattr, SYS_llistxattr})) {
    CHECK(AnswerOnSharedHost(call, {}) == SECCOMP_RET_ERRNO);  // An empty list.
    CHECK(Answer(call) == SECCOMP_RET_ALLOW);
  }
  // getxattrat, listxattrat and file_getattr.
  for (long call : {464, 465, 468}) CHECK(AnswerOnSharedHost(call, {}) == kEnosys);
  for (long call : std::to_array<long>({SYS_fgetxattr, SYS_flistxattr})) {
    CHECK(AnswerOnSharedHost(call, {}) == SECCOMP_RET_ALLOW);
  }
}

TEST_CASE("The filter denies every call on OpenShell's list") {
  for (long call : std::to_array<long>(
           {SYS_ptrace, SYS_bpf, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd,
            SYS_io_uring_setup, SYS_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
            SYS_move_mount, SYS_open_tree, SYS_setns, SYS_umount2, SYS_pivot_root, SYS_userfaultfd,
            SYS_perf_event_open})) {
    INFO(call);
    CHECK(Answer(call) == kEperm);
  }
}

TEST_CASE("The filter denies what else attacks the kernel from a container") {
  for (long call : std::to_array<long>(
           {SYS_io_uring_enter, SYS_io_uring_register, SYS_mount_setattr, SYS_chroot,
            SYS_open_by_handle_at, SYS_init_module, SYS_finit_module, SYS_delete_module,
            SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_syslog,
            SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_fanotify_init})) {
    INFO(call);
    CHECK(Answer(call) == kEperm);
  }
}

TEST_CASE(
    "The filter answers as a kernel without the call where programs have a second way for that") {
  for (long call :
       std::to_array<long>({SYS_clone3, SYS_memfd_create,
                            447,  // memfd_secret, which older headers do not have.
                            SYS_keyctl, SYS_add_key, SYS_request_key, SYS_kcmp, SYS_migrate_pages,
                            SYS_move_pages, SYS_lookup_dcookie, SYS_process_madvise})) {
    INFO(call);
    CHECK(Answer(call) == kEnosys);
  }
  CHECK(Answer(SYS_name_to_handle_at) == (SECCOMP_RET_ERRNO | EOPNOTSUPP));
}

TEST_CASE(
    "The filter lets a process be held and signalled by a descriptor, but not the first one") {
  CHECK(Answer(SYS_pidfd_open, {2}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_pidfd_open, {1}) == kEperm);
  CHECK(Answer(SYS_pidfd_open, {1 | uint64_t{1} << 32}) == kEperm);
  CHECK(Answer(SYS_pidfd_send_signal, {3}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("The filter allows what builds and tests do") {
  for (long call : std::to_array<long>(
           {SYS_read,       SYS_write,     SYS_openat,     SYS_close,         SYS_mmap,
            SYS_mprotect,   SYS_execve,    SYS_exit_group, SYS_wait4,         SYS_kill,
            SYS_socketpair, SYS_connect,   SYS_bind,       SYS_listen,        SYS_epoll_ctl,
            SYS_futex,      SYS_getrandom, SYS_prctl,      SYS_ioctl,         SYS_clone,
            SYS_unshare,    SYS_socket,    SYS_execveat,   SYS_inotify_init1, SYS_flock,
            SYS_statx,      SYS_setsid})) {
    INFO(call);
    CHECK(Answer(call) == SECCOMP_RET_ALLOW);
  }
}

TEST_CASE("The filter denies each new namespace to clone and unshare, however it is dressed up") {
  for (uint64_t flag :
       std::to_array<uint64_t>({CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
                                CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP})) {
    INFO(flag);
    CHECK(Answer(SYS_unshare, {flag}) == kEperm);
    CHECK(Answer(SYS_clone, {flag | SIGCHLD}) == kEperm);
    CHECK(Answer(SYS_clone, {flag | CLONE_VM | CLONE_THREAD | CLONE_SIGHAND}) == kEperm);
  }
  CHECK(Answer(SYS_clone,
               {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_clone, {CLONE_VFORK | CLONE_VM | SIGCHLD}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_clone, {CLONE_UNTRACED | SIGCHLD}) == kEperm);
  CHECK(Answer(SYS_unshare, {CLONE_FS | CLONE_FILES}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("The filter denies sockets that leave the network namespace or reach old code") {
  for (uint64_t family = 1; family < 64; ++family) {
    INFO(family);
    const bool kept =
        family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    const uint32_t wanted = kept ? uint32_t{SECCOMP_RET_ALLOW} : kEperm;
    CHECK(Answer(SYS_socket, {family, SOCK_STREAM}) == wanted);
    CHECK(Answer(SYS_socketpair, {family, SOCK_STREAM}) == wanted);
  }
  for (uint64_t family : std::to_array<uint64_t>({AF_INET, AF_INET6})) {
    CHECK(Answer(SYS_socket, {family, SOCK_STREAM}) == SECCOMP_RET_ALLOW);
    CHECK(Answer(SYS_socket, {family, SOCK_DGRAM | SOCK_CLOEXEC}) == SECCOMP_RET_ALLOW);
    CHECK(Answer(SYS_socket, {family, SOCK_RAW}) == kEperm);
    CHECK(Answer(SYS_socket, {family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC}) == kEperm);
  }
  CHECK(Answer(SYS_socket, {AF_INET, SOCK_PACKET}) == kEperm);
  CHECK(Answer(SYS_socket, {AF_NETLINK, SOCK_RAW, 0}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_socket, {AF_NETLINK, SOCK_RAW, 9}) == (SECCOMP_RET_ERRNO | EAFNOSUPPORT));
}

TEST_CASE("The kernel reads 32 bits of a socket's family, and so does the filter") {
  constexpr uint64_t kHigh = 1ULL << 32;
  CHECK(Answer(SYS_socket, {kHigh | AF_PACKET, SOCK_RAW}) == kEperm);
  CHECK(Answer(SYS_socket, {kHigh | AF_VSOCK, SOCK_STREAM}) == kEperm);
  CHECK(Answer(SYS_socket, {kHigh | AF_INET, kHigh | SOCK_RAW}) == kEperm);
  CHECK(Answer(SYS_socket, {AF_NETLINK, SOCK_RAW, kHigh | 9}) ==
        (SECCOMP_RET_ERRNO | EAFNOSUPPORT));
  CHECK(Answer(SYS_seccomp, {kHigh | SECCOMP_SET_MODE_FILTER}) == kEperm);
  CHECK(Answer(SYS_prctl, {kHigh | PR_SET_SECCOMP}) == kEperm);
}

TEST_CASE("The filter denies executing a bare descriptor, and nothing else of execveat") {
  CHECK(Answer(SYS_execveat, {3, 0, 0, 0, AT_EMPTY_PATH}) == kEnosys);
  CHECK(Answer(SYS_execveat, {3, 0, 0, 0, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW}) == kEnosys);
  CHECK(Answer(SYS_execveat, {3, 0, 0, 0, AT_SYMLINK_NOFOLLOW}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("The filter denies further filters and keystrokes pushed into a terminal") {
  CHECK(Answer(SYS_seccomp, {SECCOMP_SET_MODE_FILTER}) == kEperm);
  CHECK(Answer(SYS_seccomp, {SECCOMP_GET_ACTION_AVAIL}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_prctl, {PR_SET_SECCOMP, SECCOMP_MODE_FILTER}) == kEperm);
  CHECK(Answer(SYS_prctl, {PR_SET_NAME}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_ioctl, {0, TIOCSTI}) == kEperm);
  CHECK(Answer(SYS_ioctl, {0, (1ULL << 40) | TIOCSTI}) == kEperm);
  CHECK(Answer(SYS_ioctl, {0, TIOCSETD}) == kEperm);
  CHECK(Answer(SYS_ioctl, {0, TIOCGETD}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_ioctl, {0, TIOCGWINSZ}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("Requests of file systems reach none, but for those that copy and those that read") {
  constexpr uint32_t kEnotty = SECCOMP_RET_ERRNO | ENOTTY;
  constexpr uint64_t kSnapshot = 0x50009401;
  constexpr uint64_t kSetEncryption = 0x800c6613;
  for (uint64_t number = 0; number < 256; ++number) {
    INFO(number);
    const bool copies = number == 9 || number == 13 || number == 54;
    CHECK(Answer(SYS_ioctl, {3, 0x40049400 | number}) ==
          (copies ? uint32_t{SECCOMP_RET_ALLOW} : kEnotty));
    CHECK(Answer(SYS_ioctl, {3, 0xbc00 | number}) == kEnotty);
    CHECK(Answer(SYS_ioctl, {3, 0xf500 | number}) == kEnotty);
    CHECK(Answer(SYS_ioctl, {3, 0x9300 | number}) == SECCOMP_RET_ALLOW);
    CHECK(Answer(SYS_ioctl, {3, 0x6600 | number}) == SECCOMP_RET_ALLOW);
  }
  CHECK(Answer(SYS_ioctl, {3, uint64_t{7} << 32 | kSnapshot}) == kEnotty);
  for (uint64_t reads : {0x80086601, 0x80086603, 0xc020660b, 0xc0046686}) {
    CHECK(AnswerOnSharedHost(SYS_ioctl, {3, reads}) == SECCOMP_RET_ALLOW);
  }
  for (uint64_t writes : {uint64_t{0x40086604}, kSetEncryption, uint64_t{0x40806685},
                          uint64_t{0x40087602}, uint64_t{0x40047211}, kSnapshot}) {
    CHECK(AnswerOnSharedHost(SYS_ioctl, {3, writes}) == kEnotty);
  }
  CHECK(AnswerOnSharedHost(SYS_ioctl, {3, 0x40086602}) == kEperm);
}

TEST_CASE("The limit on cores stays, and who sets it is told that it was done") {
  constexpr uint32_t kDone = SECCOMP_RET_ERRNO;
  auto check = [&](auto answer) {
    CHECK(answer(SYS_setrlimit, {RLIMIT_CORE, 4096}) == kDone);
    CHECK(answer(SYS_setrlimit, {RLIMIT_NOFILE, 4096}) == SECCOMP_RET_ALLOW);
    CHECK(answer(SYS_prlimit64, {0, RLIMIT_CORE, 4096}) == kDone);
    CHECK(answer(SYS_prlimit64, {0, RLIMIT_CORE, 4096, 8192}) == kEperm);
    CHECK(answer(SYS_prlimit64, {17, RLIMIT_CORE, 4096}) == kEperm);
    CHECK(answer(SYS_prlimit64, {0, RLIMIT_CORE, 0, 8192}) == SECCOMP_RET_ALLOW);
  };
  check([](long call, const Arguments& arguments) { return Answer(call, arguments); });
  check(AnswerOnSharedHost);
}

TEST_CASE("No lease keeps others waiting, and locks are the programs' own") {
  CHECK(Answer(SYS_fcntl, {3, F_SETLEASE}) == (SECCOMP_RET_ERRNO | EINVAL));
  CHECK(Answer(SYS_fcntl, {3, F_SETLK}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_fcntl, {3, F_GETLEASE}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("Where Landlock does not hold signals, the filter spares processes and their groups") {
  SharedHost shared;
  shared.signals = true;
  shared.spared = {100};
  shared.spared_groups = {90};
  auto filter = BuildFilter(Connects::kBrokered, Processors::kFree, &shared).value();
  auto of = [](int64_t number) { return Arguments{static_cast<uint64_t>(number), SIGKILL}; };
  for (int64_t spared : {100, -90, -1}) {
    INFO(spared);
    CHECK(AnswerOf(filter, SYS_kill, of(spared)) == kEperm);
  }
  for (int64_t own : {0, 101, -101}) {
    INFO(own);
    CHECK(AnswerOf(filter, SYS_kill, of(own)) == SECCOMP_RET_ALLOW);
  }
}

TEST_CASE("The filter protects the sandbox's first process, which has the agent's user id") {
  constexpr uint64_t kHigh = 1ULL << 32;
  for (uint64_t pid : {uint64_t{1}, kHigh | 1}) {
    CHECK(Answer(SYS_prlimit64, {pid, RLIMIT_NOFILE, 4096}) == kEperm);
    CHECK(Answer(SYS_prlimit64, {pid, RLIMIT_NOFILE, kHigh}) == kEperm);
    CHECK(Answer(SYS_prlimit64, {pid, RLIMIT_NOFILE, 0, 4096}) == SECCOMP_RET_ALLOW);
  }
  CHECK(Answer(SYS_prlimit64, {17, RLIMIT_NOFILE, 4096}) == SECCOMP_RET_ALLOW);
  for (uint64_t pid : std::to_array<uint64_t>({1, 17, kHigh, static_cast<uint64_t>(-1)})) {
    CHECK(AnswerOnSharedHost(SYS_prlimit64, {pid, RLIMIT_NOFILE, 4096}) == kEperm);
    CHECK(AnswerOnSharedHost(SYS_prlimit64, {pid, RLIMIT_NOFILE, 0, 4096}) == SECCOMP_RET_ALLOW);
  }
  CHECK(Answer(SYS_prlimit64, {0, RLIMIT_NOFILE, 4096}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_prlimit64, {0, RLIMIT_NOFILE}) == SECCOMP_RET_ALLOW);
  for (long call :
       {SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler}) {
    INFO(call);
    CHECK(Answer(call, {1}) == kEperm);
    CHECK(Answer(call, {kHigh | 1}) == kEperm);
    CHECK(Answer(call, {0}) == SECCOMP_RET_ALLOW);
    CHECK(Answer(call, {17}) == SECCOMP_RET_ALLOW);
  }
  for (long call : {SYS_setpriority, SYS_ioprio_set}) {
    uint64_t process = call == SYS_setpriority ? 0 : 1;
    uint64_t user = call == SYS_setpriority ? 2 : 3;
    CHECK(Answer(call, {process, 1}) == kEperm);
    CHECK(Answer(call, {user, 1000}) == kEperm);
    CHECK(Answer(call, {process, 0}) == SECCOMP_RET_ALLOW);
    CHECK(Answer(call, {process, 17}) == SECCOMP_RET_ALLOW);
  }
}

TEST_CASE("The filter denies leaving the processors that are the limit") {
  auto pinned = BuildFilter(Connects::kFree, Processors::kPinned).value();
  CHECK(AnswerOf(pinned, SYS_sched_setaffinity, {}) == kEperm);
  CHECK(AnswerOf(pinned, SYS_sched_getaffinity, {}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("Watched connects and renames wait, and no other call does") {
  auto watched = [](long call) { return Answer(call, {}, kArchitecture, Connects::kWatched); };
  CHECK(watched(SYS_connect) == SECCOMP_RET_USER_NOTIF);
  CHECK(watched(SYS_renameat) == SECCOMP_RET_USER_NOTIF);
  CHECK(watched(SYS_renameat2) == SECCOMP_RET_USER_NOTIF);
  CHECK(watched(SYS_linkat) == SECCOMP_RET_ALLOW);
  CHECK(watched(SYS_sendto) == SECCOMP_RET_ALLOW);
  CHECK(watched(SYS_accept4) == SECCOMP_RET_ALLOW);
  CHECK(watched(SYS_ptrace) == kEperm);
  CHECK(Answer(SYS_connect) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_renameat2) == SECCOMP_RET_ALLOW);
}

TEST_CASE("The filter denies connecting with the first bytes sent") {
  constexpr uint32_t kUnsupported = SECCOMP_RET_ERRNO | EOPNOTSUPP;
  CHECK(Answer(SYS_sendto, {3, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL}) == kUnsupported);
  CHECK(Answer(SYS_sendmsg, {3, 0, MSG_FASTOPEN}) == kUnsupported);
  CHECK(Answer(SYS_sendmmsg, {3, 0, 1, MSG_FASTOPEN}) == kUnsupported);
  CHECK(Answer(SYS_sendto, {3, 0, 0, MSG_NOSIGNAL | MSG_DONTWAIT}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_sendmsg, {3, 0, MSG_NOSIGNAL}) == SECCOMP_RET_ALLOW);
  CHECK(Answer(SYS_sendmmsg, {3, 0, 1, MSG_NOSIGNAL}) == SECCOMP_RET_ALLOW);
}

// Raise the bound in seccomp.cc only with a decision about each number below it.
TEST_CASE("Calls that are newer than the list are told to be missing") {
  constexpr long kOpenTreeAttr = 467;
  constexpr long kFileSetattr = 469;
  CHECK(Answer(kOpenTreeAttr) == kEperm);
  CHECK(Answer(kFileSetattr) == SECCOMP_RET_ALLOW);
  for (long call = kFileSetattr + 1; call < 512; ++call) {
    CAPTURE(call);
    CHECK(Answer(call) == kEnosys);
    CHECK(Answer(call, {}, kArchitecture, Connects::kWatched) == kEnosys);
  }
}

TEST_CASE("Calls of another architecture end the process") {
  CHECK(Answer(SYS_read, {}, AUDIT_ARCH_I386) == SECCOMP_RET_KILL_PROCESS);
  CHECK(Answer(SYS_read, {}, AUDIT_ARCH_ARM) == SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
  constexpr long kX32Bit = 0x40000000;
  CHECK(Answer(kX32Bit + SYS_read) == SECCOMP_RET_KILL_PROCESS);
#endif
}

TEST_CASE("The filter is small enough for every call to pass it quickly") {
  CHECK(BuildFilter(Connects::kFree).value().size() < 600);
  CHECK(BuildFilter(Connects::kWatched).value().size() < 600);
}

}  // namespace
}  // namespace sandbox
