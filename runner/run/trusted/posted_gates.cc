// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/posted_gates.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "run/trusted/gates.h"

namespace run {
namespace {

// Zero is a limit that is not said.
int64_t Smaller(int64_t one, int64_t other) {
  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

// A task's other rules and its larger limits loosen what is built in: they are for its runs alone.
Gates StrictestOf(Gates gates, const std::vector<Task>& tasks) {
  for (const Task& task : tasks) {
    gates.files = Smaller(gates.files, task.gates.files);
    gates.bytes = Smaller(gates.bytes, task.gates.bytes);
    std::copy_if(task.gates.paths.begin(), task.gates.paths.end(), std::back_inserter(gates.paths),
                 [](const auto& rule) { return rule.action == change::PathAction::kRefuse; });
  }
  return gates;
}

}  // namespace

Result<change::GateLimits> PostedGates(const Config& config, std::string_view task) {
  Gates gates;
  if (task.empty()) {
    gates = StrictestOf(config.gates, config.tasks);
  } else {
    const auto found = std::find_if(config.tasks.begin(), config.tasks.end(),
                                    [&](const Task& one) { return one.name == task; });
    if (found == config.tasks.end()) {
      return Error{Code::kRefused, "the configuration has no task '" + std::string(task) + "'",
                   "--task: the name of the run's task"};
    }
    gates = Merge(config.gates, found->gates);
  }
  change::GateLimits limits;
  limits.paths = std::move(gates.paths);
  if (gates.files != 0) limits.files_max = gates.files;
  if (gates.bytes != 0) limits.patch_bytes_max = gates.bytes;
  return limits;
}

}  // namespace run
