// SPDX-License-Identifier: Apache-2.0
// `gates` of the configuration and of a task: which changes are refused.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "change/protected_path.h"
#include "codec/data/position.h"
#include "codec/data/yaml.h"
#include "run/trusted/config_reader.h"

namespace run {

struct Gates {
  std::vector<change::PathRule> paths;  // change::GateLimits::paths.
  // change::GateLimits::files_max and patch_bytes_max; zero: not said.
  int64_t files = 0;
  int64_t bytes = 0;
};

// Parses the value of `gates`. Fails with kInvalid if it is not a mapping; keeps everything else
// that is not understood.
Result<Gates> ParseGates(const codec::YamlNode& node, ConfigReader* reader);

// Returns the gates of a run of a task: the paths of both, and the task's limits if it has any.
Gates Merge(Gates config, const Gates& task);

// Returns a rule for the pattern at `at`. Fails with kInvalid for what is not a pattern.
Result<change::PathRule> ParsePath(const ConfigReader& reader, std::string_view pattern,
                                   change::PathAction action, codec::Position at);

}  // namespace run
