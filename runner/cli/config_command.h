// SPDX-License-Identifier: Apache-2.0
// The commands about a repository's configuration.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// The options of `config init`.
std::vector<OptionSpec> ConfigInitOptions();

Result<int> ConfigCheckCommand(const Arguments& arguments);
Result<int> ConfigExplainCommand(const Arguments& arguments);
Result<int> ConfigInitCommand(const Arguments& arguments);
Result<int> ConfigSchemaCommand(const Arguments& arguments);

}  // namespace cli
