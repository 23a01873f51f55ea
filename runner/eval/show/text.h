// SPDX-License-Identifier: Apache-2.0
// Results for people, as text and as Markdown. Pure. Text by agents is made harmless.
#pragma once

#include <string>

#include "eval/grade/result.h"

namespace eval {

// Renders a line per cell, the rates with their denominators, and what a reader has to know.
std::string RenderTable(const Results& results);
// Returns the same for a step summary.
std::string RenderMarkdown(const Results& results);

// Each rate with its name, in the order in which they are shown.
std::vector<std::pair<std::string, Rate>> NamedRates(const Metrics& metrics);
// Returns what a reader has to know beside the cells, a line each.
std::vector<std::string> NotesOf(const Results& results);
// Renders "solved", "not solved" or "unknown".
std::string_view RenderUtility(const CellResult& cell);
// Returns what decided, in a line.
std::string ReasonOf(const CellResult& cell);
// Renders an outcome: "succeeded (delivery not observed)".
std::string RenderOutcome(const CellResult& cell);

}  // namespace eval
