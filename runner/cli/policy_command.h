// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace cli {

Command ExplainCommandSpec();

// `agentic-ci policy check`, `explain`, `diff`, `suggest`, `export`, `test` and `schema`. Each
// returns the exit status; none needs a network or a privilege.
Result<int> PolicyCheckCommand(const Arguments& arguments);
Result<int> PolicyExplainCommand(const Arguments& arguments);
Result<int> PolicyDiffCommand(const Arguments& arguments);
Result<int> PolicySuggestCommand(const Arguments& arguments);
Result<int> PolicyExportCommand(const Arguments& arguments);
Result<int> PolicyTestCommand(const Arguments& arguments);
Result<int> PolicySchemaCommand(const Arguments& arguments);

}  // namespace cli
