// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/mounts.h"
#include "base/process.h"
#include "base/sys.h"
#include "sandbox/limit/limit.h"

// Exported by libcgroup 2.0.2 and missing from its public headers.
extern "C" {
enum cg_version_t { CGROUP_UNK = 0, CGROUP_V1, CGROUP_V2, CGROUP_DISK = 0xFF };
int cgroup_get_controller_version(const char* controller, enum cg_version_t* version);
}

namespace sandbox {
namespace {

constexpr std::string_view kPrefix = "agentic-ci-";
constexpr const char* kControllers[] = {"memory", "pids", "cpu"};
constexpr size_t kCounterBytesMax = 4096;
constexpr int64_t kCpuPeriodUs = 100'000;  // The kernel's default period.

struct FreeCgroup {
  void operator()(struct cgroup* group) const { ::cgroup_free(&group); }
};
using Handle = std::unique_ptr<struct cgroup, FreeCgroup>;

// This process's own group of a v1 controller: limits set above us must go on holding below.
std::string OwnGroup(const std::string& controller, const std::string& mount_point) {
  Result<std::string> text = sys::ReadFile("/proc/self/cgroup", kCounterBytesMax);
  if (!text.ok()) return "/";
  std::istringstream lines(text.value());
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + controller + ",") != std::string::npos) {
      const std::string path = line.substr(second + 1);
      for (const sys::Mount& mount : sys::ReadMounts()) {
        if (mount.point == mount_point) return GroupIn(mount, path).value_or(path);
      }
      return path;
    }
  }
  return "/";
}

std::string MountPoint(const std::string& controller) {
  char* raw = nullptr;
  if (::cgroup_get_subsys_mount_point(controller.c_str(), &raw) != 0 || raw == nullptr) return "";
  std::string mount = raw;
  ::free(raw);
  return mount;
}

using Setting = std::pair<std::string, std::string>;

// A group of "cpu" counts, too, and then needs no setting.
bool Wanted(const std::string& controller, const SandboxLimits& limits) {
  if (controller == "memory") return limits.memory_bytes > 0;
  if (controller == "pids") return limits.pids > 0;
  return limits.cpus > 0 || limits.cpu_s > 0;
}

std::vector<Setting> Settings(const std::string& controller, bool v2, const SandboxLimits& limits) {
  if (controller == "memory" && limits.memory_bytes > 0) {
    std::string bytes = std::to_string(limits.memory_bytes);
    if (v2) return {{"memory.max", bytes}, {"memory.swap.max", "0"}, {"memory.oom.group", "0"}};
    std::vector<Setting> settings = {{"memory.limit_in_bytes", bytes}};
    auto add_if_known = [&](const char* key, const std::string& value) {
      bool known = sys::Exists(MountPoint(controller) + "/" + key);
      if (known) settings.emplace_back(key, value);
      return known;
    };
    // Memory and swap together: nothing is left for swap. A kernel that does not count swap does
    // not swap a group of swappiness 0.
    if (!add_if_known("memory.memsw.limit_in_bytes", bytes)) {
      (void)add_if_known("memory.swappiness", "0");
    }
    // On v1, TCP's buffers are counted apart, where they are counted.
    (void)add_if_known("memory.kmem.tcp.limit_in_bytes", bytes);
    return settings;
  }
  if (controller == "pids" && limits.pids > 0) return {{"pids.max", std::to_string(limits.pids)}};
  if (controller == "cpu" && limits.cpus > 0) {
    std::string quota = std::to_string(static_cast<int64_t>(limits.cpus * kCpuPeriodUs));
    if (v2) return {{"cpu.max", quota + " " + std::to_string(kCpuPeriodUs)}};
    return {{"cpu.cfs_period_us", std::to_string(kCpuPeriodUs)}, {"cpu.cfs_quota_us", quota}};
  }
  return {};
}

// Creates one group; false leaves nothing behind.
bool CreateGroup(const std::string& name, const std::string& controller,
                 const std::vector<Setting>& settings) {
  Handle group(::cgroup_new_cgroup(name.c_str()));
  if (group == nullptr) return false;
  struct cgroup_controller* part = ::cgroup_add_controller(group.get(), controller.c_str());
  if (part == nullptr) return false;
  for (const auto& [key, value] : settings) {
    if (::cgroup_add_value_string(part, key.c_str(), value.c_str()) != 0) return false;
  }
  if (::cgroup_create_cgroup(group.get(), 1) == 0) return true;
  (void)::cgroup_delete_cgroup(group.get(), 1);
  return false;
}

// Returns what the names of this PID namespace's groups begin with: containers may share a cgroup,
// and each counts its processes from 1.
std::string OwnPrefix() {
  struct stat st {};
  (void)::stat("/proc/self/ns/pid", &st);
  return std::string(kPrefix) + std::to_string(st.st_ino) + "-";
}

std::string OwnName() { return OwnPrefix() + std::to_string(::getpid()); }

// Removes the groups of this namespace's runs whose supervisor was killed and could not. A group
// that still holds processes is refused by the kernel.
void SweepGroups(const std::string& parent) {
  DIR* entries = ::opendir(parent.c_str());
  if (entries == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries)) names.emplace_back(entry->d_name);
  ::closedir(entries);
  const std::string prefix = OwnPrefix();
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    pid_t supervisor = 0;
    (void)std::from_chars(name.data() + prefix.size(), name.data() + name.size(), supervisor);
    if (supervisor > 0 && HasEnded(supervisor)) {
      (void)::rmdir((parent + "/" + name).c_str());
    }
  }
}

}  // namespace

// One controller of v1, or of v2 as root.
void Cgroup::CreateThrough(const std::string& controller, const SandboxLimits& limits) {
  cg_version_t version = CGROUP_UNK;
  if (::cgroup_get_controller_version(controller.c_str(), &version) != 0) return;
  bool v2 = version == CGROUP_V2;
  if (!Wanted(controller, limits)) return;
  std::vector<Setting> settings = Settings(controller, v2, limits);
  // On v2 a group with processes has no child groups with controllers; the root is the exception.
  std::string own = v2 ? "/" : OwnGroup(controller, MountPoint(controller));
  std::string parent = own == "/" ? "" : own.substr(1) + "/";
  std::string directory = MountPoint(controller) + "/" + parent;
  std::string name = parent + OwnName();
  bool writable = ::access(directory.c_str(), W_OK) == 0;
  if (writable) SweepGroups(directory);
  if (!writable || !CreateGroup(name, controller, settings)) {
    why_not_ = "no writable cgroup";
    return;
  }
  groups_.push_back({controller, name, MountPoint(controller) + "/" + name, v2});
}

void Cgroup::CreateDelegated(const SandboxLimits& limits) {
  std::string why_not;
  std::optional<DelegatedCgroup> taken = DelegatedCgroup::Take(&why_not);
  if (!taken) {
    why_not_ = why_not;
    return;
  }
  delegated_.emplace(std::move(*taken));
  SweepGroups(delegated_->directory());
  std::string path = delegated_->directory() + "/" + OwnName();
  if (::mkdir(path.c_str(), 0755) != 0) {
    why_not_ = "the delegated cgroup does not accept child cgroups";
    delegated_.reset();
    return;
  }
  for (const char* controller : kControllers) {
    bool set = delegated_->offers(controller);
    std::vector<Setting> settings = Settings(controller, true, limits);
    for (const auto& [key, value] : settings) {
      // Without swap in the kernel there is no file for it, and nothing to limit.
      bool needed = key != "memory.swap.max";
      set = set && (WriteCgroupFile(path + "/" + key, value) || !needed);
    }
    if (set && Wanted(controller, limits)) groups_.push_back({controller, OwnName(), path, true});
  }
}

Cgroup Cgroup::Create(const SandboxLimits& limits) {
  Cgroup cgroup;
  ::cgroup_set_default_logger(-1);
  if (::cgroup_init() == 0) {
    for (const char* controller : kControllers) cgroup.CreateThrough(controller, limits);
  } else {
    cgroup.why_not_ = "no cgroup file system is mounted";
  }
  if (cgroup.groups_.empty()) cgroup.CreateDelegated(limits);
  return cgroup;
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : delegated_(std::move(other.delegated_)),
      groups_(std::exchange(other.groups_, {})),
      why_not_(std::move(other.why_not_)) {
  other.delegated_.reset();
}

Cgroup::~Cgroup() { Remove(); }

void Cgroup::Remove() const {
  if (delegated_) {
    std::string path = delegated_->directory() + "/" + OwnName();
    // A gateway that lives on for a moment.
    MoveProcesses(path, delegated_->waiting_room());
    (void)::rmdir(path.c_str());
    return;
  }
  for (const Group& group : groups_) {
    Handle handle(::cgroup_new_cgroup(group.name.c_str()));
    if (handle == nullptr) continue;
    ::cgroup_add_controller(handle.get(), group.controller.c_str());
    // On v2 the one directory serves every controller and is gone after the first.
    (void)::cgroup_delete_cgroup(handle.get(), 1);
  }
}

const Cgroup::Group* Cgroup::Find(const std::string& controller) const {
  for (const Group& group : groups_) {
    if (group.controller == controller) return &group;
  }
  return nullptr;
}

bool Cgroup::enforces(const std::string& controller) const { return Find(controller) != nullptr; }

Result<std::vector<Fd>> Cgroup::OpenTasks(const std::vector<std::string>& controllers) const {
  std::vector<Fd> files;
  for (const Group& group : groups_) {
    bool wanted =
        std::find(controllers.begin(), controllers.end(), group.controller) != controllers.end();
    if (group.v2 || !wanted) continue;
    files.push_back(TRY(sys::Open(group.path + "/tasks", O_WRONLY)));
  }
  return files;
}

Status Cgroup::Attach(pid_t pid) const {
  for (const Group& group : groups_) {
    if (!group.v2) continue;
    if (WriteCgroupFile(group.path + "/cgroup.procs", std::to_string(pid))) return Ok();
    return Errno("attaching to cgroup " + group.path);
  }
  return Ok();
}

std::optional<int64_t> Cgroup::OutOfMemoryKills() const {
  const Group* group = Find("memory");
  if (group == nullptr) return std::nullopt;
  if (group->v2) return ReadCgroupCounter(group->path + "/memory.events", "oom_kill");
  return ReadCgroupCounter(group->path + "/memory.oom_control", "oom_kill");
}

std::optional<int64_t> Cgroup::RefusedForks() const {
  const Group* group = Find("pids");
  if (group == nullptr) return std::nullopt;
  return ReadCgroupCounter(group->path + "/pids.events", "max");
}

std::optional<int64_t> Cgroup::MemoryPeakBytes() const {
  const Group* group = Find("memory");
  if (group == nullptr) return std::nullopt;
  return ReadCgroupCounter(
      group->path + (group->v2 ? "/memory.peak" : "/memory.max_usage_in_bytes"), "");
}

std::optional<std::chrono::nanoseconds> Cgroup::ProcessorTime() const {
  const Group* group = Find("cpu");
  if (group == nullptr) return std::nullopt;
  if (!group->v2) {
    // Debian, and every distribution known, mounts cpuacct with cpu; elsewhere the file is missing.
    std::optional<int64_t> ns = ReadCgroupCounter(group->path + "/cpuacct.usage", "");
    if (!ns) return std::nullopt;
    return std::chrono::nanoseconds(*ns);
  }
  std::optional<int64_t> us = ReadCgroupCounter(group->path + "/cpu.stat", "usage_usec");
  if (!us) return std::nullopt;
  return std::chrono::microseconds(*us);
}

}  // namespace sandbox
