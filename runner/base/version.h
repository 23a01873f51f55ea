// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The version that `agentic-ci --version` and run.json give. tools/tidy holds CMakeLists.txt to the
// same value.
inline constexpr std::string_view kVersion = "0.1.0";
// The page where readers of a report learn what wrote it; its /issues takes reports of bugs.
inline constexpr std::string_view kHomepage = "https://github.com/OWNER/agentic-ci";
