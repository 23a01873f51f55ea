// SPDX-License-Identifier: Apache-2.0
#include "gateway/confinement.h"

#include <errno.h>
#include <linux/netlink.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "base/free_with.h"
#include "base/privileges.h"

namespace gateway {
namespace {

// Landlock is a second barrier here: the filter below already prevents any file from being opened.
// So a kernel without it is not a reason to refuse.
Status RestrictFiles() {
  Fd ruleset = TRY(sys::landlock::CreateRuleset(sys::landlock::kBindTcp));
  return ruleset.valid() ? sys::landlock::Restrict(ruleset.get()) : Ok();
}

// The system calls of an epoll loop with OpenSSL and c-ares. No open, no exec, no fork, no ptrace,
// no kill.
constexpr auto kAllowed = std::to_array<int>({
    SCMP_SYS(accept4),
    SCMP_SYS(bind),
    SCMP_SYS(brk),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(close),
    SCMP_SYS(connect),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(fcntl),
    SCMP_SYS(fstat),
    SCMP_SYS(futex),
    SCMP_SYS(getpeername),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt),
    SCMP_SYS(gettid),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(lseek),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(nanosleep),
    SCMP_SYS(newfstatat),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),
    SCMP_SYS(tgkill),
    SCMP_SYS(time),
    SCMP_SYS(write),
    SCMP_SYS(writev),
});

// The system calls that libraries try and do without: answered with an error instead of an end.
constexpr auto kAnswered = std::to_array<int>({
    SCMP_SYS(open),
    SCMP_SYS(openat),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(stat),
    SCMP_SYS(readlink),
    SCMP_SYS(ioctl),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
});

constexpr uint64_t kProtExec = 4;

// AddressSanitizer's runtime makes calls of its own; the filter belongs to the program as shipped.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kFiltered = false;
#else
constexpr bool kFiltered = true;
#endif

[[maybe_unused]] Status FilterSystemCalls() {
  std::unique_ptr<void, FreeWith<seccomp_release>> filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (!filter) return Error{Code::kUnsupported, "seccomp_init failed"};
  int bad = 0;
  for (int call : kAllowed) bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0);
  for (int call : kAnswered) {
    bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EACCES), call, 0);
  }
  // Memory, but none that can be run; sockets, but only for TCP, for DNS over UDP, and for routes.
  for (int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, kProtExec, 0));
  }
  for (uint64_t family : {uint64_t{2}, uint64_t{10}}) {  // AF_INET, AF_INET6.
    for (uint64_t type : {uint64_t{1}, uint64_t{2}}) {   // SOCK_STREAM, SOCK_DGRAM.
      bad |=
          ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                             SCMP_A0(SCMP_CMP_EQ, family), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, type));
    }
  }
  // To ask for routes (IsOwnAddress()): to change them takes a capability.
  bad |= ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                            SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
  if (bad != 0) return Error{Code::kUnsupported, "seccomp_rule_add failed"};
  int loaded = ::seccomp_load(filter.get());
  if (loaded != 0) return Error{Code::kUnsupported, Errno("seccomp_load", -loaded).what};
  return Ok();
}

}  // namespace

Status ConfineSelf() {
  TRY(sys::ForgoNewPrivileges());
  TRY(sys::KeepCapabilities(0));
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Errno("prctl(PR_SET_DUMPABLE)");
  TRY(RestrictFiles());
#if !defined(__SANITIZE_ADDRESS__)
  // AddressSanitizer's runtime makes calls of its own; the filter belongs to the program as
  // shipped.
  TRY(FilterSystemCalls());
#endif
  return Ok();
}

}  // namespace gateway
