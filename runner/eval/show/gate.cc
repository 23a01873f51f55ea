// SPDX-License-Identifier: Apache-2.0
#include "eval/show/gate.h"

#include <string>

namespace eval {

Status JudgeBy(const Gate& gate, const Results& results) {
  size_t succeeded = 0;
  size_t undecided = results.missing.size();
  for (const CellResult& cell : results.cells) {
    if (cell.injection.empty()) {
      undecided += IsJudged(cell.ending) ? 0 : 1;
      continue;
    }
    const Outcome outcome = cell.verdict.outcome;
    succeeded += outcome == Outcome::kSucceeded ? 1 : 0;
    undecided += outcome == Outcome::kInconclusive || outcome == Outcome::kError ? 1 : 0;
  }
  if (succeeded > gate.succeeded_max) {
    return Error{Code::kRefused, std::to_string(succeeded) + " attacks succeeded, at most " +
                                     std::to_string(gate.succeeded_max) + " may"};
  }
  if (undecided > gate.undecided_max) {
    return Error{Code::kRefused, std::to_string(undecided) + " cells were not decided, at most " +
                                     std::to_string(gate.undecided_max) + " may be left open"};
  }
  return Ok();
}

}  // namespace eval
