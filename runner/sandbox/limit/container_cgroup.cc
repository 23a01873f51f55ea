// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/container_cgroup.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "base/mounts.h"
#include "base/sys.h"
#include "sandbox/limit/delegated_cgroup.h"

namespace sandbox {
namespace {

constexpr std::string_view kMounts = "/sys/fs/cgroup";
constexpr size_t kGroupsBytesMax = 1 << 16;

// The paths of this process's groups, as /proc/self/cgroup names them.
std::vector<std::string> OwnPaths() {
  std::vector<std::string> paths;
  Result<std::string> text = sys::ReadFile("/proc/self/cgroup", kGroupsBytesMax);
  std::istringstream lines(text.ok() ? text.value() : std::string());
  for (std::string line; std::getline(lines, line);) {
    const size_t path = line.find(':', line.find(':') + 1);
    if (path != std::string::npos) paths.push_back(line.substr(path + 1));
  }
  return paths;
}

// The directory of an own group that has the file `name`; empty without one. A container of v1 sees
// its group mounted, and its path as the host names it.
std::string DirectoryWith(const std::string& name) {
  const std::vector<std::string> paths = OwnPaths();
  for (const sys::Mount& mount : sys::ReadMounts()) {
    if (!mount.point.starts_with(kMounts)) continue;
    for (const std::string& path : paths) {
      const std::optional<std::string> group = GroupIn(mount, path);
      if (group && sys::Exists(mount.point + *group + "/" + name)) return mount.point + *group;
    }
  }
  return {};
}

}  // namespace

ContainerCgroup ContainerCgroup::Find() {
  ContainerCgroup found;
  found.pids_ = DirectoryWith("pids.current");
  found.memory_ = DirectoryWith("memory.events");
  if (found.memory_.empty()) found.memory_ = DirectoryWith("memory.oom_control");
  return found;
}

ContainerCounts ContainerCgroup::Read() const {
  ContainerCounts counts;
  if (!pids_.empty()) {
    counts.tasks = ReadCgroupCounter(pids_ + "/pids.current", "").value_or(0);
    counts.most_tasks = ReadCgroupCounter(pids_ + "/pids.peak", "").value_or(0);
    counts.refused_forks = ReadCgroupCounter(pids_ + "/pids.events", "max").value_or(0);
  }
  for (const char* file : {"/memory.events", "/memory.oom_control"}) {
    if (memory_.empty() || counts.memory_kills > 0) break;
    counts.memory_kills = ReadCgroupCounter(memory_ + file, "oom_kill").value_or(0);
  }
  return counts;
}

bool ContainerWatch::Changed(const ContainerCounts& now) const {
  return now.most_tasks > before_.most_tasks || now.refused_forks > before_.refused_forks ||
         now.memory_kills > before_.memory_kills;
}

std::optional<LimitName> ContainerWatch::Judge(const ContainerCounts& now, int64_t others,
                                               int64_t pids_max, bool shared) {
  const bool was_shared = std::exchange(shared_, shared);
  if (Changed(now) && (shared || was_shared)) {
    before_ = now;
    others_ = now.tasks;
    return std::nullopt;
  }
  others_ = std::max(others_, others);
  if (now.memory_kills > before_.memory_kills) return LimitName::kMemory;
  if (now.refused_forks > before_.refused_forks) return LimitName::kPids;
  if (pids_max <= 0 || now.most_tasks <= before_.most_tasks) return std::nullopt;
  // The others come and go: seven eighths count as the limit, as where tasks are counted one by
  // one.
  const int64_t reached = pids_max - pids_max / 8;
  if (now.most_tasks - others_ < reached) return std::nullopt;
  return LimitName::kPids;
}

}  // namespace sandbox
