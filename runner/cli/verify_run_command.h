// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

// `agentic-ci verify-run`: verifies what is stated of a run, offline. Returns exit status 0 if
// everything that is expected of it holds, 77 if not, with each expectation that is unmet by name.
Result<int> VerifyRunCommand(const Arguments& arguments);
Command VerifyRunCommandSpec();

}  // namespace cli
