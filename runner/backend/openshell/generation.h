// SPDX-License-Identifier: Apache-2.0
// The generations of OpenShell, which do not understand each other.
#pragma once

#include <optional>
#include <string_view>

namespace openshell {

enum class Generation { k00, k01 };

// Returns the generation of "0.0" or "0.1"; nullopt for any other text.
constexpr std::optional<Generation> ParseGeneration(std::string_view text) {
  if (text == "0.0") return Generation::k00;
  if (text == "0.1") return Generation::k01;
  return std::nullopt;
}

}  // namespace openshell
