// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Joins texts: "a, b, c". Empty texts are joined like others.
inline std::string Join(const std::vector<std::string>& texts, std::string_view between = ", ") {
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) joined += between;
    joined += texts[i];
  }
  return joined;
}
