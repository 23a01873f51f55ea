// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/record.h"

namespace run {

// Tells a person at the terminal how the run ended and why: findings, limits that were reached,
// connections that failed and requests that were refused, a screenful of each at most, one a line.
// `directory` has the report.
void LogEnd(const report::RunRecord& record, const std::string& directory);

}  // namespace run
