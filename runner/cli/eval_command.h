// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

std::vector<Command> EvalCommands();

Result<int> EvalValidateCommand(const Arguments& arguments);
Result<int> EvalListCommand(const Arguments& arguments);
Result<int> EvalRunCommand(const Arguments& arguments);
Result<int> EvalGradeCommand(const Arguments& arguments);
Result<int> EvalMergeCommand(const Arguments& arguments);
Result<int> EvalCompareCommand(const Arguments& arguments);
Result<int> EvalRedteamCommand(const Arguments& arguments);
Result<int> EvalRedteamAgentCommand(const Arguments& arguments);

}  // namespace cli
