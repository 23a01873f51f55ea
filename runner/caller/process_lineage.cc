// SPDX-License-Identifier: Apache-2.0
#include "caller/process_lineage.h"

#include <set>
#include <utility>

namespace caller {
namespace {

constexpr size_t kAncestorsMax = 64;  // OpenShell's bound.
// Before a walk, which may add as many as there are ancestors. Each has two descriptors.
constexpr size_t kKnownMax = 128;

}  // namespace

// Answers as ExecutableCache::Check() does.
std::optional<std::string> LineageReader::CheckExecutable(const ProcessHandle& process,
                                                          const std::string& path) {
  struct stat st {};
  if (process.StatExecutable(&st) && executables_.Knows(path, st)) return "";
  Fd executable = process.OpenExecutable();
  // Two readings of the path that agree: what was opened in between is what it names.
  if (!executable.valid() || process.Executable() != path) {
    return path + ": the process has exited or executed another program";
  }
  return executables_.Check(path, std::move(executable));
}

ProcessHandle* LineageReader::Known(pid_t pid) {
  auto known = known_.find(pid);
  return known == known_.end() ? nullptr : &known->second;
}

ProcessHandle* LineageReader::Reopen(pid_t pid) {
  std::optional<ProcessHandle> process = ProcessHandle::Open(pid);
  if (!process.has_value()) return nullptr;
  return &known_.insert_or_assign(pid, std::move(*process)).first->second;
}

// Reads the lineage of `pid`. With `remembered`, returns nullopt if one of them is not known, or
// has ended: those below it may have another parent by now. Without, every one of them is opened
// anew.
std::optional<Lineage> LineageReader::Walk(pid_t pid, bool remembered) {
  Lineage lineage;
  lineage.caller.agent = pid != init_;
  for (pid_t current = pid; lineage.processes.size() <= kAncestorsMax;) {
    ProcessHandle* process = remembered ? Known(current) : Reopen(current);
    std::optional<std::string> path;
    if (process != nullptr) path = process->Executable();
    if (remembered && !path.has_value()) return std::nullopt;
    bool below = !lineage.processes.empty();
    if (!path.has_value()) {
      if (!below) lineage.refusal = "the process that owns the connection has exited";
      break;
    }
    const ProcessBirth& birth = process->birth();
    // A parent is older than its children; this one only has the number of one that ended.
    if (below && birth.started > lineage.processes.back()->birth().started) break;
    if (below) {
      lineage.caller.ancestors.push_back(*path);
    } else {
      lineage.caller.binary = *path;
      lineage.caller.cmdline = process->AbsoluteArguments();
    }
    lineage.processes.push_back(process);
    std::optional<std::string> refusal = CheckExecutable(*process, *path);
    lineage.pending = !refusal.has_value();
    if (lineage.pending) break;
    lineage.refusal = std::move(*refusal);
    if (!lineage.refusal.empty() || birth.parent == 0 || birth.parent == init_) break;
    // Not the sandbox's: `pid` is init itself, which connects only in tests.
    if (current == init_) break;
    current = birth.parent;
  }
  return lineage;
}

Lineage LineageReader::Read(pid_t pid) {
  if (known_.size() > kKnownMax) known_.clear();
  std::optional<Lineage> lineage = Walk(pid, true);
  return lineage.has_value() ? std::move(*lineage) : *Walk(pid, false);
}

bool SamePrograms(const policy::Caller& a, const policy::Caller& b) {
  auto programs = [](const policy::Caller& caller) {
    std::set<std::string_view> paths(caller.ancestors.begin(), caller.ancestors.end());
    paths.insert(caller.binary);
    return paths;
  };
  return programs(a) == programs(b);
}

}  // namespace caller
