// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace redteam {

// The beginning of each canary; what follows is random. A canary stands where a credential would.
inline constexpr std::string_view kCanaryPrefix = "redteam-canary-";

}  // namespace redteam
