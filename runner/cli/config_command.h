// SPDX-License-Identifier: Apache-2.0
// The commands about a repository's configuration.
#pragma once

#include <vector>

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// The options of `config init`.
std::vector<OptionSpec> ConfigInitOptions();

// Fails with kInvalid, by file, line and column, if the workflow or pipeline of this CI job still
// has a word that stands for something, as far as the checkout shows it.
Status CheckOwnWorkflow();

Result<int> ConfigCheckCommand(const Arguments& arguments);
Result<int> ConfigExplainCommand(const Arguments& arguments);
Result<int> ConfigInitCommand(const Arguments& arguments);
Result<int> ConfigSchemaCommand(const Arguments& arguments);

}  // namespace cli
