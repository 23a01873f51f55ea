// SPDX-License-Identifier: Apache-2.0
#include "sandbox/filter/shared_host_rules.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <utility>

#include "sandbox/call/file_call.h"

namespace sandbox {
namespace {

// Denied, since the System V objects and message queues are the whole container's, and would
// outlive the run.
constexpr auto kSharedDenied = std::to_array<int>({
    SCMP_SYS(shmget),
    SCMP_SYS(shmat),
    SCMP_SYS(shmctl),
    SCMP_SYS(semget),
    SCMP_SYS(semop),
    SCMP_SYS(semtimedop),
    SCMP_SYS(semctl),
    SCMP_SYS(msgget),
    SCMP_SYS(msgsnd),
    SCMP_SYS(msgrcv),
    SCMP_SYS(msgctl),
    SCMP_SYS(mq_open),
    SCMP_SYS(mq_unlink),
});

// Newer ways to change what a path leads to, or to read attributes, by number: libseccomp does not
// know them.
constexpr auto kNewFileCalls = std::to_array<int>({
    452,  // fchmodat2
    463,  // setxattrat
    464,  // getxattrat
    465,  // listxattrat
    466,  // removexattrat
    468,  // file_getattr
    469,  // file_setattr
});

constexpr auto kAttributeCalls = std::to_array<int>({
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(removexattr),
    SCMP_SYS(lremovexattr),
    SCMP_SYS(fremovexattr),
});

constexpr uint64_t kExt = 'f';  // Ext2, ext3 and ext4, and what every file system has from them.
// FS_IOC_GETFLAGS, SETFLAGS (which has a rule of its own), GETVERSION and FIEMAP, what is read of
// encryption and verity.
constexpr auto kExtReading = std::to_array<uint64_t>({1, 2, 3, 11, 21, 22, 27, 134, 135});

void DenySignals(Rules& rules, const SharedHost& shared) {
  for (int call : {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
                   SCMP_SYS(rt_tgsigqueueinfo)}) {
    rules.DenyWhere(call, std::array{IntArgument(0, -1)});
    for (pid_t process : shared.spared) rules.DenyWhere(call, std::array{IntArgument(0, process)});
    for (pid_t group : shared.spared_groups) {
      rules.DenyWhere(call, std::array{IntArgument(0, -group)});
    }
  }
}

// Has the broker told, for a user with other processes: it lets a process change itself.
void NotifyOfProcesses(Rules& rules) {
  for (int call : {SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setattr), SCMP_SYS(sched_setparam),
                   SCMP_SYS(sched_setscheduler)}) {
    rules.NotifyWhere(call, Argument(0, SCMP_CMP_NE, 0));
  }
  for (int call : {SCMP_SYS(setpriority), SCMP_SYS(ioprio_set)}) {
    rules.NotifyWhere(call, Argument(1, SCMP_CMP_NE, 0));
  }
}

// The calls that open a file by a path, and which argument has the flags.
struct Open {
  int call;
  unsigned flags;
};

constexpr auto kOpens = std::to_array<Open>({
    {SCMP_SYS(openat), 2},
#ifdef SYS_open  // Linux on arm64 never had it.
    {SCMP_SYS(open), 1},
#endif
});

// An open that asks for neither reading nor writing (an access mode of 3) asks Landlock for no
// right; it can truncate nonetheless, and ioctl(2) takes it. One that asks to read can truncate
// what may only be read, where Landlock does not look at that. The flags of openat2(2) are in
// memory, where no filter sees them: programs do without the call, as before Linux 5.6.
void DenyOpens(Rules& rules, bool truncates) {
  rules.Deny(SCMP_SYS(openat2), ENOSYS);
  for (auto [call, flags] : kOpens) {
    rules.DenyWhere(call, std::array{Flag(flags, O_ACCMODE)}, EACCES);
    if (!truncates) continue;
    constexpr uint64_t kReads = O_ACCMODE | O_TRUNC;
    rules.DenyWhere(call, std::array{Argument(flags, SCMP_CMP_MASKED_EQ, kReads, O_TRUNC)}, EACCES);
  }
}

// The two ways to a terminal's other end, for a user whose other terminals lie beside the agent's.
// No rule here meets one of DenyOpens(): which of two has effect is not said.
void NotifyOfTerminals(Rules& rules, bool truncates) {
  rules.NotifyWhere(SCMP_SYS(ioctl), IntArgument(1, TIOCGPTPEER));
  for (auto [call, flags] : kOpens) {
    for (uint64_t mode : {O_RDONLY, O_WRONLY, O_RDWR}) {
      const uint64_t denied = truncates && mode == O_RDONLY ? O_TRUNC : 0;
      rules.NotifyWhere(call, Argument(flags, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_NOCTTY | denied,
                                       mode | O_NOCTTY));
    }
  }
}

}  // namespace

void AddSharedHostRules(Rules& rules, const SharedHost& shared) {
  for (int call : {SCMP_SYS(socket), SCMP_SYS(bind), SCMP_SYS(listen)}) rules.Notify(call);
  for (int call : kSharedDenied) rules.Deny(call, ENOSYS);
  // A datagram could be sent to any address, whatever its socket is connected to.
  for (int type : {SOCK_DGRAM, SOCK_RAW}) {
    rules.DenyWhere(SCMP_SYS(socketpair),
                    std::array{Argument(1, SCMP_CMP_MASKED_EQ, 0xf, static_cast<uint64_t>(type))});
  }
  // Routes of the sender's choice, and another protocol in the place of TCP.
  constexpr int kTcpUlp = 31;
  for (auto [level, option] :
       {std::pair<int, int>(IPPROTO_IP, IP_OPTIONS), std::pair<int, int>(IPPROTO_IPV6, IPV6_RTHDR),
        std::pair<int, int>(IPPROTO_TCP, kTcpUlp)}) {
    rules.DenyWhere(SCMP_SYS(setsockopt), std::array{IntArgument(1, level), IntArgument(2, option)},
                    ENOPROTOOPT);
  }
  for (int command : {F_SETOWN, F_SETOWN_EX}) {
    rules.DenyWhere(SCMP_SYS(fcntl), std::array{IntArgument(1, command)});
  }
  constexpr int kSetOwner = 0x8901;  // FIOSETOWN
  constexpr int kSetGroup = 0x8902;  // SIOCSPGRP
  for (int request : {kSetOwner, kSetGroup}) {
    rules.DenyWhere(SCMP_SYS(ioctl), std::array{IntArgument(1, request)});
  }
  for (pid_t process : shared.spared) ProtectProcess(rules, process);
  // The filter sees a process id, and not which user the process belongs to.
  rules.DenyWhere(SCMP_SYS(prlimit64),
                  std::array{Argument(0, SCMP_CMP_NE, 0), Argument(2, SCMP_CMP_NE, 0)});
  if (shared.signals) DenySignals(rules, shared);
  if (shared.truncates) rules.Deny(SCMP_SYS(truncate));
  DenyOpens(rules, shared.truncates);
  if (shared.shares_user) {
    NotifyOfProcesses(rules);
    NotifyOfTerminals(rules, shared.truncates);
  }
  rules.Notify(SCMP_SYS(pidfd_open));
  // kill(2) is held by number.
  rules.Deny(SCMP_SYS(pidfd_send_signal), ENOSYS);
  // Also where nothing outside is the agent's: what everybody may write to, everybody may touch.
  for (int call : FileCalls()) rules.Notify(call);
  for (int call : kNewFileCalls) rules.Deny(call, ENOSYS);
  for (int call : kAttributeCalls) rules.Deny(call, EOPNOTSUPP);
  // Landlock does not look at attributes, and some hold the address that a file came from. By its
  // path, a file seems to have none; those of an open file may be read.
  constexpr uint32_t kEmpty = 0;
  for (int call : {SCMP_SYS(listxattr), SCMP_SYS(llistxattr)}) rules.Deny(call, kEmpty);
  for (int call : {SCMP_SYS(getxattr), SCMP_SYS(lgetxattr)}) rules.Deny(call, ENODATA);
  constexpr int kSetFlags = 0x40086602;       // FS_IOC_SETFLAGS
  constexpr int kSetAttributes = 0x401c5820;  // FS_IOC_FSSETXATTR
  for (int request : {kSetFlags, kSetAttributes}) {
    rules.DenyWhere(SCMP_SYS(ioctl), std::array{IntArgument(1, request)});
  }
  DenyRequests(rules, kExt, {kExtReading.begin(), kExtReading.end()});
  constexpr int kSetVersion = 0x40087602;        // FS_IOC_SETVERSION
  constexpr int kSetFatAttributes = 0x40047211;  // FAT_IOCTL_SET_ATTRIBUTES
  for (int request : {kSetVersion, kSetFatAttributes}) {
    rules.DenyWhere(SCMP_SYS(ioctl), std::array{IntArgument(1, request)}, ENOTTY);
  }
}

}  // namespace sandbox
