// SPDX-License-Identifier: Apache-2.0
// Makes this process's own delegated cgroup usable for limits, and undoes that at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mounts.h"

namespace sandbox {

// This process's own cgroup of v2, where it was handed over to this user (systemd's `Delegate=yes`,
// a container with a writable cgroup): groups can be made below it. A group that has controllers
// for its children has no processes itself, so this process and its children move into a child
// group meanwhile. Destroying it undoes all of that.
class DelegatedCgroup {
 public:
  // Returns nullopt, and the reason in `why_not`, if there is none or if others' processes are in
  // it too, which this program must not move.
  static std::optional<DelegatedCgroup> Take(std::string* why_not);

  DelegatedCgroup(DelegatedCgroup&& other) noexcept;
  DelegatedCgroup& operator=(DelegatedCgroup&&) = delete;
  ~DelegatedCgroup();

  const std::string& directory() const { return directory_; }
  // Returns whether groups below have `controller`: "memory", "pids" or "cpu".
  bool offers(const std::string& controller) const;
  // Returns the directory of the child group that this process moved into.
  std::string waiting_room() const;

 private:
  DelegatedCgroup() = default;

  std::string directory_;  // Empty if moved from.
  std::vector<std::string> controllers_;
};

// Writes one line into a file of a cgroup's; false if the kernel refuses it.
bool WriteCgroupFile(const std::string& path, const std::string& text);

// Returns the group `path`, as /proc/self/cgroup names it, as this mount shows it: "/" for its top.
// nullopt if it is outside: a container may see nothing but its own group.
std::optional<std::string> GroupIn(const sys::Mount& mount, const std::string& path);

// Returns the number behind `key` in a file of a cgroup's, or the number that the file is, for no
// key.
std::optional<int64_t> ReadCgroupCounter(const std::string& file, const std::string& key);

// Moves every process of the group `from` into the group `to`.
void MoveProcesses(const std::string& from, const std::string& to);

}  // namespace sandbox
