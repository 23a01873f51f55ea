// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci post`: the only command that uses a forge's token. Returns the exit status.
Result<int> PostCommand(const Arguments& arguments);

}  // namespace cli
