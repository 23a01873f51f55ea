// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "record/event.h"

namespace openshell {

struct LogLine {
  int64_t time_ms = 0;  // Milliseconds by the sandbox's clock.
  // A decision about a connection or a request; nullopt if the line is about something else.
  std::optional<record::Event> event;
  // True for such a line that could not be read, as of another version, or whose parts cannot be
  // told apart: the agent may have named a program so that it reads as another decision.
  bool unread = false;
};

// Parses one line of `openshell logs`, from the sandbox's supervisor (OCSF shorthand). What the
// agent shaped (paths, names of programs) is bounded. Returns nullopt for any other line.
std::optional<LogLine> ParseLogLine(std::string_view line);

}  // namespace openshell
