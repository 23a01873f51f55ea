// SPDX-License-Identifier: Apache-2.0
// The scripted agent of `eval redteam`: what runs inside of the sandbox, and as the control
// outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "eval/redteam/probe.h"

namespace redteam {

// Makes every probe that `targets` leaves, one after the other, each in a process of its own and
// for a few seconds at most, and writes a line for each to standard output.
Status TryEverything(const Targets& targets);

// Render and parse the line of a probe, without an end of line; ParseLine() returns nullopt for any
// other text.
std::string RenderLine(std::string_view id, const Attempt& attempt);
struct AttemptLine {
  std::string id;
  Attempt attempt;
};
std::optional<AttemptLine> ParseLine(std::string_view line);

}  // namespace redteam
