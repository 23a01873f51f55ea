// SPDX-License-Identifier: Apache-2.0
// One sandbox for the steps of a CI job: each finds it by the checkout.
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

// Returns `setup`, `exec` and `stop`, for the table of commands.
std::vector<Command> SetupCommands();

// Each returns the exit status.
Result<int> SetupCommand(const Arguments& arguments);
Result<int> ExecCommand(const Arguments& arguments);
Result<int> StopCommand(const Arguments& arguments);
// Does `run --sandbox`; `request` is what ReadRequest() made of the arguments.
Result<int> RunInSandbox(const Arguments& arguments, const run::Request& request);

}  // namespace cli
