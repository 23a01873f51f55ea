// SPDX-License-Identifier: Apache-2.0
// What /proc says of the sandbox's processes, seen from outside. Everything is bounded: the
// processes are the sandbox's own and may be as many and as odd as it likes.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace gateway {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;  // 0 for the first.
};

// `init` and all its descendants, parents before children, at most kProcessesMax.
std::vector<ProcessEntry> ListDescendants(pid_t init);
inline constexpr size_t kProcessesMax = 32768;

// True when a descriptor of `pid` is the socket with that inode. `*budget` is how many more
// descriptors may be looked at; it becomes 0, with an answer that means nothing, when they are not
// enough.
bool HoldsSocket(pid_t pid, uint64_t inode, size_t* budget);

// The path of the executable as its own mount namespace knows it, " (deleted)" taken off; nullopt
// when the process is gone.
std::optional<std::string> ExecutableOf(pid_t pid);

// What stat(2) says of the executable itself, whatever its path says now. False when the process is
// gone.
bool StatExecutable(pid_t pid, struct stat* st);
// The executable itself, whatever its path says now. Not valid when the process is gone.
Fd OpenExecutable(pid_t pid);

// The absolute paths among the arguments, at most a few.
std::vector<std::string> AbsoluteArguments(pid_t pid);

// The process's number in its innermost namespace, that of its process where `pid` is a thread;
// `pid` itself when that cannot be read.
pid_t InnermostPid(pid_t pid);

// What a descriptor of a process (or of one thread) is, "socket:[123]"; nullopt when it is none.
std::optional<std::string> DescriptorTarget(pid_t pid, int fd);
// The inode of a socket by that name; nullopt when it is something else.
std::optional<uint64_t> ParseSocketName(std::string_view name);

struct ProcessBirth {
  pid_t parent = 0;      // 0: none that we can see.
  uint64_t started = 0;  // Clock ticks since boot.
};
// nullopt when the process (or thread) is gone.
std::optional<ProcessBirth> BirthOf(pid_t pid);

}  // namespace gateway
