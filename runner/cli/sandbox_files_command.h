// SPDX-License-Identifier: Apache-2.0
// The commands `agentic-ci sandbox ...` about whole trees of files.
#pragma once

#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

std::vector<Command> SandboxFileCommands();

// Each returns the exit status.
Result<int> SandboxPutCommand(const Arguments& arguments);
Result<int> SandboxGetCommand(const Arguments& arguments);
Result<int> SandboxApplyCommand(const Arguments& arguments);
Result<int> SandboxSnapshotCommand(const Arguments& arguments);
Result<int> SandboxSnapshotsCommand(const Arguments& arguments);
Result<int> SandboxRestoreCommand(const Arguments& arguments);

}  // namespace cli
