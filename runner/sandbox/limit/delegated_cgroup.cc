// SPDX-License-Identifier: Apache-2.0
#include "sandbox/limit/delegated_cgroup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/sys.h"

namespace sandbox {
namespace {

constexpr size_t kGroupTextBytesMax = 1 << 20;
constexpr size_t kCounterTextBytesMax = 4096;

std::string ReadText(const std::string& path) {
  Result<std::string> text = sys::ReadFile(path, kGroupTextBytesMax);
  return text.ok() ? std::move(text).value() : std::string();
}

// Returns the path of this process's group, below the mount of cgroup v2; empty without one.
std::string OwnDirectory() {
  std::istringstream mounts(ReadText("/proc/self/mounts"));
  std::string top;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream columns(line);
    std::string device;
    std::string place;
    std::string type;
    columns >> device >> place >> type;
    if (type == "cgroup2") top = place;
  }
  if (top.empty()) return {};
  std::istringstream groups(ReadText("/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line == "0::/" ? top : top + line.substr(3);
  }
  return {};
}

bool IsOwnOrChild(const std::string& pid) {
  if (pid == std::to_string(::getpid())) return true;
  std::string status = ReadText("/proc/" + pid + "/status");
  return status.find("\nPPid:\t" + std::to_string(::getpid()) + "\n") != std::string::npos;
}

// The first process in the group that is neither this one nor a child of it.
std::optional<std::string> Stranger(const std::string& group) {
  std::istringstream pids(ReadText(group + "/cgroup.procs"));
  for (std::string pid; pids >> pid;) {
    if (!IsOwnOrChild(pid)) return pid;
  }
  return std::nullopt;
}

}  // namespace

bool WriteCgroupFile(const std::string& path, const std::string& text) {
  Result<Fd> file = sys::Open(path, O_WRONLY);
  return file.ok() && sys::WriteAll(file.value().get(), text).ok();
}

std::optional<std::string> GroupIn(const sys::Mount& mount, const std::string& path) {
  if (mount.root == "/") return path;
  if (path == mount.root) return "/";
  if (!path.starts_with(mount.root + "/")) return std::nullopt;
  return path.substr(mount.root.size());
}

std::optional<int64_t> ReadCgroupCounter(const std::string& file, const std::string& key) {
  Result<std::string> text = sys::ReadFile(file, kCounterTextBytesMax);
  if (!text.ok()) return std::nullopt;
  std::istringstream lines(text.value());
  for (std::string line; std::getline(lines, line);) {
    if (key.empty()) return ::strtoll(line.c_str(), nullptr, 10);
    if (line.starts_with(key + " ")) {
      return ::strtoll(line.c_str() + key.size() + 1, nullptr, 10);
    }
  }
  return std::nullopt;
}

void MoveProcesses(const std::string& from, const std::string& to) {
  std::istringstream pids(ReadText(from + "/cgroup.procs"));
  for (std::string pid; pids >> pid;) (void)WriteCgroupFile(to + "/cgroup.procs", pid);
}

std::optional<DelegatedCgroup> DelegatedCgroup::Take(std::string* why_not) {
  DelegatedCgroup taken;
  std::string own = OwnDirectory();
  // The root of all is not delegated to anybody; it has no type.
  bool writable = !own.empty() && sys::Exists(own + "/cgroup.type");
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    writable = writable && ::access((own + file).c_str(), W_OK) == 0;
  }
  if (!writable) {
    *why_not = "no writable cgroup";
    return std::nullopt;
  }
  if (std::optional<std::string> pid = Stranger(own)) {
    *why_not = "process " + *pid + " is also in the delegated cgroup";
    return std::nullopt;
  }
  taken.directory_ = own;
  if (::mkdir(taken.waiting_room().c_str(), 0755) != 0) {
    *why_not = "the delegated cgroup does not accept child cgroups";
    taken.directory_.clear();
    return std::nullopt;
  }
  MoveProcesses(own, taken.waiting_room());
  for (const char* controller : {"memory", "pids", "cpu"}) {
    if (WriteCgroupFile(own + "/cgroup.subtree_control", std::string("+") + controller)) {
      taken.controllers_.emplace_back(controller);
    }
  }
  if (taken.controllers_.empty()) {
    *why_not = "the delegated cgroup has no controllers";
    return std::nullopt;
  }
  return taken;
}

std::string DelegatedCgroup::waiting_room() const {
  return directory_ + "/agentic-ci-" + std::to_string(::getpid()) + "-runner";
}

DelegatedCgroup::DelegatedCgroup(DelegatedCgroup&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      controllers_(std::move(other.controllers_)) {}

DelegatedCgroup::~DelegatedCgroup() {
  if (directory_.empty()) return;
  for (const std::string& controller : controllers_) {
    (void)WriteCgroupFile(directory_ + "/cgroup.subtree_control", "-" + controller);
  }
  MoveProcesses(waiting_room(), directory_);
  (void)::rmdir(waiting_room().c_str());
}

bool DelegatedCgroup::offers(const std::string& controller) const {
  return std::find(controllers_.begin(), controllers_.end(), controller) != controllers_.end();
}

}  // namespace sandbox
