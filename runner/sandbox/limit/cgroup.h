// SPDX-License-Identifier: Apache-2.0
// Limits the kernel enforces, on cgroups of v1 and v2: through libcgroup, or below a group of v2
// that was delegated to this user, which libcgroup cannot use (it writes to every group above).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/limit/delegated_cgroup.h"

namespace sandbox {

struct SandboxLimits;

// One run's cgroups, one per controller that could be written. Removed when this is destroyed;
// everything in them must be dead by then.
class Cgroup {
 public:
  // Creates groups beneath this process's own (v1, or v2 where that is delegated to this user) or
  // beneath the root (v2) and sets `limits`.
  // Controllers that cannot be written are left out: ask enforces(). Never fails: no cgroup at all
  // is an answer too.
  static Cgroup Create(const SandboxLimits& limits);

  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();

  // Does what the destructor does, for a process that ends without it. Call it once nothing is in
  // the groups.
  void Remove() const;

  // True if it enforces `controller`: "memory", "pids" or "cpu".
  bool enforces(const std::string& controller) const;
  // Returns why not, for the record; empty if it does.
  const std::string& why_not() const { return why_not_; }

  // Opens the `tasks` files of these controllers' groups, for JoinCgroups(): of v1; none of v2,
  // where only whole processes move.
  Result<std::vector<Fd>> OpenTasks(const std::vector<std::string>& controllers) const;
  // Puts a process into the group of v2, one for all controllers. The groups of v1 the process
  // itself has joined.
  Status Attach(pid_t pid) const;

  // Returns counters of the kernel; nullopt if the controller is not this sandbox's.
  std::optional<int64_t> OutOfMemoryKills() const;
  std::optional<int64_t> RefusedForks() const;
  std::optional<int64_t> MemoryPeakBytes() const;
  // Returns the processor time of everything that was ever in the groups, whether or not it was
  // waited for.
  std::optional<std::chrono::nanoseconds> ProcessorTime() const;

 private:
  struct Group {
    std::string controller;
    std::string name;  // Relative to the controller's mount.
    std::string path;  // Absolute, for reading counters.
    bool v2 = false;
  };

  Cgroup() = default;
  void CreateThrough(const std::string& controller, const SandboxLimits& limits);
  void CreateDelegated(const SandboxLimits& limits);
  const Group* Find(const std::string& controller) const;

  std::optional<DelegatedCgroup> delegated_;  // Then all groups are the one in it.
  std::vector<Group> groups_;
  std::string why_not_;
};

}  // namespace sandbox
