// SPDX-License-Identifier: Apache-2.0
// Records every program that the agent starts (`--record-programs`), with ptrace from the
// sandbox's first process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace sandbox {

// Writes down every program that the agent, and whatever it starts, executes. Used by the sandbox's
// first process, with ptrace(2): the kernel stops a process when the arguments of its new program
// lie in its memory and nothing of that program has run. So nothing in the sandbox writes an entry,
// changes one or leaves one out. When the first process ends, all that it follows is killed.
class ProgramRecord {
 public:
  // Lines of JSON are appended to `file`, as report/event_lines.h reads them. Not valid: nothing
  // is recorded.
  explicit ProgramRecord(Fd file) : file_(std::move(file)) {}

  bool wanted() const { return file_.valid(); }
  // Follows the calling process's child `pid`, which waits before its execve(2), with the same user
  // as this process or one that it may look into. If that fails, the file stays empty: the record
  // is not kept, and the agent runs.
  void Follow(pid_t pid);
  // Returns whether `status`, of waitpid(2), reports a stop of `pid`; the stop was then recorded,
  // and `pid` goes on.
  bool Take(pid_t pid, int status);

 private:
  void Note(pid_t pid);
  void Write(std::string_view line);

  Fd file_;
  size_t bytes_ = 0;
};

}  // namespace sandbox
