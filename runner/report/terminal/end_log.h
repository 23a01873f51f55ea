// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/record.h"
#include "report/terminal/live_view.h"

namespace report {

// Tells a person how the run ended and why. On a live terminal, what RenderEnd says; elsewhere log
// lines: findings, limits that were reached, connections that failed and requests that were
// refused, a screenful of each at most, one a line. `directory` has the report.
void LogEnd(const RunRecord& record, const std::string& directory, const TerminalStyle& style);

// Logs refused requests as LogEnd does; `dropped` more are only counted.
void LogRefusals(const std::vector<DeniedRequest>& denials, int64_t dropped,
                 const std::string& directory);

}  // namespace report
