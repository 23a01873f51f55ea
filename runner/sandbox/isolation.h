// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sandbox {

// The ways in which the agent is isolated.
enum class Isolation {
  kNamespaces,  // It has a root, a network and processes of its own.
  kLandlock,    // It works on the host's own paths, by rules.
};

// Returns the tier's name, as an option and a record say it.
inline const char* TextOf(Isolation isolation) {
  return isolation == Isolation::kNamespaces ? "namespaces" : "landlock";
}

}  // namespace sandbox
