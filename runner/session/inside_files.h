// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/sandbox.h"

namespace session {

// A file that the sandbox is to have in its own layer.
struct InsideFile {
  std::string path;                      // Relative to the checkout, or absolute.
  std::optional<std::string> text = {};  // Nothing: it is removed there.
  mode_t mode = 0;
  bool makes = true;                     // Also where the sandbox sees no such file.
  std::optional<std::string> seen = {};  // Set: only where the sandbox sees this text.
};

// Writes the files, in order, with the agent's rights. Nothing inside may run meanwhile. `sandbox`
// is borrowed for the call.
Status WriteInside(const sandbox::Sandbox& sandbox, const std::vector<InsideFile>& files);

}  // namespace session
