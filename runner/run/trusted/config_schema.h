// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace run {

// A JSON Schema (2020-12) of `.agentic-ci/config.yml`, for editors: keys, types and choices. What
// it cannot say (durations, prompts' variables, patterns), ParseConfig() checks. Ends with a
// newline.
std::string RenderConfigSchema();

}  // namespace run
