// SPDX-License-Identifier: Apache-2.0
// The sandbox's processes as /proc shows them from outside. Everything is bounded: the agent
// decides how many processes there are and what they look like.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace caller {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;  // 0 for the first.
};

// Returns `init` and all its descendants, parents before children, at most kProcessesMax.
std::vector<ProcessEntry> ListDescendants(pid_t init);
inline constexpr size_t kProcessesMax = 32768;

// True if a descriptor of `pid` is the socket with that inode. `*budget` is how many more
// descriptors may be looked at; it becomes 0 if they are not enough, and the answer then has no
// meaning.
bool HoldsSocket(pid_t pid, uint64_t inode, size_t* budget);

struct ProcessBirth {
  pid_t parent = 0;      // 0 if it has none that can be seen.
  uint64_t started = 0;  // Clock ticks since boot.
};

// A process, or a thread, held by its directory in /proc: questions are about this process while it
// lives, and fail afterwards, even if another process has its number by then. Holds two
// descriptors.
class ProcessHandle {
 public:
  // Returns nullopt if there is none.
  static std::optional<ProcessHandle> Open(pid_t pid);

  // Returns the birth of the process as it was when it was opened. The parent is another only once
  // that has ended.
  const ProcessBirth& birth() const { return birth_; }
  // Returns the path of the executable as its own mount namespace knows it, " (deleted)" taken off;
  // nullopt if the process has ended.
  std::optional<std::string> Executable() const;
  // Gives what stat(2) says of the executable itself, whatever its path says now. Returns false if
  // the process has ended.
  bool StatExecutable(struct stat* st) const;
  // Opens the executable itself, whatever its path says now. Not valid when the process has ended.
  Fd OpenExecutable() const;
  // Returns the absolute paths among the first 4096 bytes of the arguments, at most a few.
  std::vector<std::string> AbsoluteArguments();
  // Its number in its innermost namespace, that of its process where it is a thread; ours when
  // that cannot be read.
  pid_t InnermostPid();
  // Returns what one of its descriptors refers to, "socket:[123]"; nullopt if it is not open.
  std::optional<std::string> DescriptorTarget(int fd) const;

 private:
  ProcessHandle(pid_t pid, Fd directory) : pid_(pid), directory_(std::move(directory)) {}

  pid_t pid_;
  Fd directory_;
  Fd arguments_;  // Opened when first read.
  ProcessBirth birth_;
  pid_t innermost_pid_ = 0;  // 0 if not asked yet.
};

// Returns the inode of a socket by that name; nullopt if it is something else.
std::optional<uint64_t> ParseSocketName(std::string_view name);

}  // namespace caller
