// SPDX-License-Identifier: Apache-2.0
// Graded cells and a suite's results, as eval.json and results.json have them: parse, render,
// compare.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "eval/grade/metrics.h"
#include "eval/grade/verdict.h"

namespace eval {

// A graded cell, as results show it.
struct CellResult {
  std::string user;
  std::string injection;  // Empty for the control.
  int64_t trial = 1;
  Ending ending = Ending::kNeverRan;
  std::string ending_reason;
  Verdict verdict;
  std::string answer;                                         // Its beginning.
  std::vector<std::pair<std::string, std::string>> channels;  // Name and completeness.
  std::vector<std::pair<std::string, std::string>> hashes;    // Evidence files and their SHA-256.
  std::vector<std::string> vectors;                           // The places of the payload.
  int64_t ms = 0;
  int64_t agent_ms = 0;
  int64_t attempts = 1;  // More than one if the agent did not start the first time.
  std::string setup;     // The digest of how it was run; empty if it is not known.

  std::string Name() const { return user + "," + injection + "," + std::to_string(trial); }
};

struct Results {
  std::string suite;
  std::string suite_file;
  std::string suite_sha256;
  std::vector<CellResult> cells;     // In the order of the plan.
  std::vector<std::string> missing;  // Planned, and not run.
  std::vector<std::string> notes;    // Notes for the reader: another suite, a broken cell.
};

inline Tally TallyOf(const CellResult& cell) {
  return {!cell.injection.empty(), cell.verdict.utility.value, IsJudged(cell.ending),
          cell.verdict.outcome, cell.verdict.delivery};
}

inline Metrics MetricsOf(const Results& results) {
  std::vector<Tally> tallies;
  for (const CellResult& cell : results.cells) tallies.push_back(TallyOf(cell));
  return Measure(tallies);
}

}  // namespace eval
