// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace run {

// Renders a JSON Schema (2020-12) of `.agentic-ci/config.yml`, for editors: keys, types and
// choices. ParseConfig() checks what it cannot express: durations, prompts' variables, patterns.
// Ends with a newline.
std::string RenderConfigSchema();

}  // namespace run
