// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci doctor`: shows what this host can enforce. Returns exit status 69 if no run could
// start.
Result<int> DoctorCommand(const Arguments& arguments);

}  // namespace cli
