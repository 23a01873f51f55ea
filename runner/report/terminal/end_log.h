// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/record.h"
#include "report/terminal/live_view.h"

namespace report {

// Tells a person how the run ended and why. On a live terminal, what RenderEnd says; elsewhere log
// lines: findings, limits that were reached, connections that failed and requests that were
// refused, a screenful of each at most, one a line. `directory` has the report.
void LogEnd(const RunRecord& record, const std::string& directory, const TerminalStyle& style);

}  // namespace report
