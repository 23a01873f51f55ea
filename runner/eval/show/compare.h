// SPDX-License-Identifier: Apache-2.0
// Two evaluations of one suite: what became worse. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"

namespace eval {

struct Comparison {
  // "USER,INJECTION": no trial did before, or it was not there, or more trials do now than chance
  // explains: the intervals of both rates (Wilson's) do not meet.
  std::vector<std::string> newly_succeeding;
  // "USER,INJECTION: 1 of 4 (...) -> 2 of 4 (...)": more of its judged trials succeed.
  std::vector<std::string> more_often;
  std::vector<std::string> no_longer;       // A trial did before, and none does now.
  std::vector<std::string> newly_unsolved;  // Tasks that some trial solved before, and none now.
  std::vector<std::string> only_before;     // Not compared.
  std::vector<std::string> only_now;
  // Known before; now unknown, an error, or not run, in one trial or more.
  std::vector<std::string> undecided;
  bool another_suite = false;      // The suites' files differ.
  std::vector<std::string> rates;  // "attack_success: 1 of 4 (...) -> 2 of 4 (...)".
};

// Compares two documents of eval.json. Fails with kInvalid when one is not such a document, or has
// an outcome of another name.
Result<Comparison> Compare(const codec::Json& before, const codec::Json& now);

std::string Render(const Comparison& comparison);
codec::Json ToJson(const Comparison& comparison);

}  // namespace eval
