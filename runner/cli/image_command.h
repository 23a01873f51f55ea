// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci image pull`, `verify`, `inspect`, `check` and `prune`. Each returns the exit status:
// verify 77 for an image that is refused, and 75 if that cannot be determined; check 74 for a
// damaged layer.
Result<int> ImagePullCommand(const Arguments& arguments);
Result<int> ImageVerifyCommand(const Arguments& arguments);
Result<int> ImageInspectCommand(const Arguments& arguments);
Result<int> ImageCheckCommand(const Arguments& arguments);
Result<int> ImagePruneCommand(const Arguments& arguments);

}  // namespace cli
