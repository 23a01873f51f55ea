// SPDX-License-Identifier: Apache-2.0
// What the kernel counts for the container that a run is in. Its control group can be read where it
// cannot be written, as in a pod; it also counts what else runs in the container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sandbox/limit/limit.h"

namespace sandbox {

struct ContainerCounts {
  int64_t tasks = 0;          // Processes and threads now,
  int64_t most_tasks = 0;     // and the most there have been (Linux 6.11; 0 before).
  int64_t refused_forks = 0;  // By the container's own limit, as far as the kernel says it here.
  int64_t memory_kills = 0;   // Processes that were killed for memory.
};

// The groups of this process, one for each controller of v1, or one of v2.
class ContainerCgroup {
 public:
  // Finds them; the root of all groups has no counts, and then there is none.
  static ContainerCgroup Find();

  ContainerCounts Read() const;

 private:
  std::string pids_;  // Directories; empty for none.
  std::string memory_;
};

// Tells what of these counts says that this run has reached a limit.
class ContainerWatch {
 public:
  // Takes the counts from before the agent started.
  explicit ContainerWatch(const ContainerCounts& before = {})
      : before_(before), others_(before.tasks) {}

  // Returns the limit that was reached. `others` is the number of the container's tasks that are
  // not the agent's, as far as it is known: counted just now. `pids_max` is the run's own limit, or
  // 0. `shared`: another run is in the container now. What changed while one was, or since the call
  // before at which one was, may be its doing: no limit is reached by that.
  std::optional<LimitName> Judge(const ContainerCounts& now, int64_t others, int64_t pids_max,
                                 bool shared);

 private:
  bool Changed(const ContainerCounts& now) const;

  ContainerCounts before_;
  int64_t others_;       // The most that was seen.
  bool shared_ = false;  // At the call before.
};

}  // namespace sandbox
