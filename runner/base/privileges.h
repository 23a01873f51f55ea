// SPDX-License-Identifier: Apache-2.0
// Privileges that a process gives up permanently, for itself and for everything that it starts.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace sys {

// Keeps every program that is executed from now on from gaining privileges (PR_SET_NO_NEW_PRIVS).
Status ForgoNewPrivileges();

// Leaves the calling thread `kept` (bits 1 << CAP_...) of the capabilities it has, and no way for a
// program that it executes to have any. Needs CAP_SETPCAP.
Status DropCapabilities(uint32_t kept);
// Does the same for what the thread has, its ambient ones too, and not for its programs. Needs
// nothing.
Status KeepCapabilities(uint32_t kept);

// Rights of Landlock, landlock(7). Those above what the headers of Debian 12 know have their number
// from include/uapi/linux/landlock.h of Linux 6.12.
namespace landlock {

inline constexpr uint64_t kExecute = 1 << 0;
inline constexpr uint64_t kRead = kExecute | 1 << 2 | 1 << 3;  // Files and directories.
inline constexpr uint64_t kList = 1 << 3;                      // The names in directories.
inline constexpr uint64_t kAllFiles = (1 << 16) - 1;
inline constexpr uint64_t kBindTcp = 1 << 0;
inline constexpr uint64_t kConnectTcp = 1 << 1;

// Returns the kernel's ABI; 0 if it has no Landlock. Then `*why`, if asked for, is ENOSYS (it is
// not built in), EOPNOTSUPP (it is off), or what a container's filter answers.
int Abi(int* why = nullptr);

// Makes a ruleset that denies every right to files, every signal and abstract socket outside of the
// process's own, and `network`, each as far as this kernel can. An invalid Fd: it has no Landlock.
Result<Fd> CreateRuleset(uint64_t network);

// Makes a ruleset that denies every signal to processes outside of it, and nothing else. Returns an
// invalid Fd if this kernel's Landlock cannot do that (ABI 6).
Result<Fd> CreateSignalRuleset();

// Allows `files` of the file, or of all beneath the directory, `place`; a file has only the rights
// that files can have. What this kernel's Landlock cannot deny, it allows anyway.
Status Allow(const Fd& ruleset, int place, uint64_t files);

// Puts the calling thread under the ruleset. Needs ForgoNewPrivileges().
Status Restrict(int ruleset);

}  // namespace landlock
}  // namespace sys
