// SPDX-License-Identifier: Apache-2.0
// Completion scripts for shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

// For bash, zsh or fish; zsh uses bash's. Anything else is kUsage.
Result<std::string> RenderCompletion(const std::vector<Command>& commands, std::string_view shell);

Result<int> CompletionCommand(const Arguments& arguments);

}  // namespace cli
