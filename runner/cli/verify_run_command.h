// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "forge/event.h"

namespace cli {

// `agentic-ci verify-run`: verifies what is stated of a run, offline. Returns exit status 0 if
// everything that is expected of it holds, 77 if not, with each expectation that is unmet by name.
Result<int> VerifyRunCommand(const Arguments& arguments);
Command VerifyRunCommandSpec();

// Checks, for `post --require-run`, that the report in `directory` is the one of a signed statement
// about a run of the event's workflow. Fails with kRefused if it is not, with kUsage without a
// signer.
Status RequireRun(const Arguments& arguments, const forge::Event& event,
                  const std::string& directory);

}  // namespace cli
