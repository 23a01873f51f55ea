// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/client/client.h"

namespace openshell {

std::string SandboxFacts::Label(std::string_view key) const {
  for (const auto& [label, value] : labels) {
    if (label == key) return value;
  }
  return {};
}

Error TooManySandboxes() {
  return {Code::kIo, "the gateway lists more than " + std::to_string(kSandboxesMax) + " sandboxes"};
}

}  // namespace openshell
