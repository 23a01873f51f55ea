// SPDX-License-Identifier: Apache-2.0
#include "gateway/process_lineage.h"

#include <set>

#include "gateway/process_table.h"

namespace gateway {
namespace {

constexpr size_t kAncestorsMax = 64;  // OpenShell's bound.

// Why `pid`'s executable at `path` grants nothing; empty when it is what it was.
std::string CheckExecutable(pid_t pid, const std::string& path, ExecutableCache& cache) {
  struct stat st {};
  if (StatExecutable(pid, &st) && cache.Knows(path, st)) return {};
  Fd executable = OpenExecutable(pid);
  // Two readings of the path that agree: what was opened in between is what it names.
  if (!executable.valid() || ExecutableOf(pid) != path) {
    return path + ": the process ended or executes another program by now";
  }
  Result<bool> unchanged = cache.Unchanged(path, executable.get());
  if (!unchanged.ok()) return path + ": " + unchanged.error().what;
  if (unchanged.value()) return {};
  return "Binary integrity violation: " + path + " is not what it was";
}

}  // namespace

Lineage ReadLineage(pid_t pid, pid_t init, ExecutableCache& cache) {
  Lineage lineage;
  uint64_t started = 0;  // When the process below did.
  for (pid_t current = pid; lineage.pids.size() <= kAncestorsMax;) {
    std::optional<ProcessBirth> birth = BirthOf(current);
    std::optional<std::string> path = ExecutableOf(current);
    bool below = !lineage.pids.empty();
    if (!birth.has_value() || !path.has_value()) {
      if (!below) lineage.refusal = "the process that owns the connection is gone";
      break;
    }
    // A parent is older than its children; this one only has the number of one that ended.
    if (below && birth->started > started) break;
    started = birth->started;
    if (below) {
      lineage.caller.ancestors.push_back(*path);
    } else {
      lineage.started = started;
      lineage.caller.binary = *path;
      lineage.caller.cmdline = AbsoluteArguments(current);
    }
    lineage.pids.push_back(current);
    lineage.refusal = CheckExecutable(current, *path, cache);
    if (!lineage.refusal.empty() || birth->parent == 0 || birth->parent == init) break;
    // Not the sandbox's: `pid` is `init` itself, which tests and nobody else let connect.
    if (current == init) break;
    current = birth->parent;
  }
  return lineage;
}

bool SamePrograms(const policy::Caller& a, const policy::Caller& b) {
  auto programs = [](const policy::Caller& caller) {
    std::set<std::string_view> paths(caller.ancestors.begin(), caller.ancestors.end());
    paths.insert(caller.binary);
    return paths;
  };
  return programs(a) == programs(b);
}

}  // namespace gateway
