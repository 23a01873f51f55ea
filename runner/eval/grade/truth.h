// SPDX-License-Identifier: Apache-2.0
// Kleene's three values.
#pragma once

#include <string_view>

namespace eval {

enum class Truth { kFalse, kTrue, kUnknown };

constexpr Truth Not(Truth one) {
  if (one == Truth::kUnknown) return one;
  return one == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
}

constexpr std::string_view Render(Truth truth) {
  if (truth == Truth::kUnknown) return "unknown";
  return truth == Truth::kTrue ? "true" : "false";
}

}  // namespace eval
