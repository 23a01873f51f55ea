// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

// Renders the completion for bash, zsh (which uses bash's) or fish. Fails with kUsage for any other
// shell.
Result<std::string> RenderCompletion(const std::vector<Command>& commands, std::string_view shell);

Result<int> CompletionCommand(const Arguments& arguments);

}  // namespace cli
