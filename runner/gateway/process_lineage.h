// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/executable_cache.h"
#include "policy/decide.h"

namespace gateway {

// One process of the sandbox and those above it, each program the same as when first seen.
struct Lineage {
  std::vector<pid_t> pids;  // The process, then its ancestors, as far as they are in `caller`.
  uint64_t started = 0;     // When the process did (process_table.h).
  policy::Caller caller;
  std::string refusal;  // Not empty: grants nothing, and why.
};

// Reads the lineage of `pid`, a process or one of its threads, up to `init`, which is not of the
// sandbox and not in it; at most 64 ancestors (OpenShell's bound). An ancestor that ended meanwhile
// grants nothing, and neither do those above it. What is read is `pid`'s own only if that still
// lives afterwards.
Lineage ReadLineage(pid_t pid, pid_t init, ExecutableCache& cache);

// May `a` and `b` do the same under every policy? A policy grants to a program and to all that it
// starts, so only which programs there are counts.
bool SamePrograms(const policy::Caller& a, const policy::Caller& b);

}  // namespace gateway
