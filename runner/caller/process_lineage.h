// SPDX-License-Identifier: Apache-2.0
// Reads a process and its ancestors, with the program of each, so that a policy can decide about
// the caller of a connection.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caller/executable_cache.h"
#include "caller/process_table.h"
#include "policy/decide/decide.h"

namespace caller {

// One process of the sandbox and those above it, each program the same as when first seen.
struct Lineage {
  // The process, then its ancestors, as far as they are in `caller`. The reader's,
  // until it reads the next.
  std::vector<ProcessHandle*> processes;
  policy::Caller caller;
  std::string refusal;   // Not empty: grants nothing, and why.
  bool pending = false;  // An executable is still to be read (Proceed): nothing of it counts yet.
};

// Reads lineages up to one process. Remembers processes between them: most connections are made by
// a few.
class LineageReader {
 public:
  explicit LineageReader(pid_t init) : init_(init) {}

  // Returns the lineage of `pid`, a process or one of its threads, up to the init process, which is
  // not of the sandbox and not in it; at most 64 ancestors (OpenShell's bound). An ancestor that
  // ended meanwhile grants nothing, and neither do those above it. What is read is `pid`'s own only
  // if that still lives afterwards.
  Lineage Read(pid_t pid);
  // Reads a piece of the executable that a lineage is pending for. Returns true if none is being
  // read.
  bool Proceed() { return executables_.Proceed(); }

 private:
  ProcessHandle* Known(pid_t pid);
  ProcessHandle* Reopen(pid_t pid);
  std::optional<Lineage> Walk(pid_t pid, bool remembered);
  std::optional<std::string> CheckExecutable(const ProcessHandle& process, const std::string& path);

  pid_t init_;
  ExecutableCache executables_;
  std::map<pid_t, ProcessHandle> known_;  // Some may have ended.
};

// Returns whether `a` and `b` may do the same under every policy. A policy grants to a program and
// to all that it starts, so only which programs there are counts.
bool SamePrograms(const policy::Caller& a, const policy::Caller& b);

}  // namespace caller
