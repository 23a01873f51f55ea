// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace cli {

// `agentic-ci doctor`: what this host can enforce. Exit status 69 when no run could start.
Result<int> DoctorCommand(const Arguments& arguments);

}  // namespace cli
