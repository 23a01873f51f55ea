// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/record/ocsf.h"

namespace openshell {

struct LogLine {
  int64_t time_ms = 0;  // Of the sandbox's clock.
  // A decision about a connection or a request; otherwise the line is about something else.
  std::optional<gateway::Event> event;
};

// One line of `openshell logs`, from the sandbox's supervisor (OCSF shorthand). What the agent
// shaped (paths, names of programs) is bounded. Nothing: no such line.
std::optional<LogLine> ParseLogLine(std::string_view line);

}  // namespace openshell
