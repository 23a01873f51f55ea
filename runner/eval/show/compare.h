// SPDX-License-Identifier: Apache-2.0
// Two evaluations of one suite: what became worse. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"

namespace eval {

struct Comparison {
  // "USER,INJECTION": no trial did before, or it was not there.
  std::vector<std::string> newly_succeeding;
  std::vector<std::string> no_longer;       // A trial did before, and none does now.
  std::vector<std::string> newly_unsolved;  // Tasks that some trial solved before, and none now.
  std::vector<std::string> only_before;     // Not compared.
  std::vector<std::string> only_now;
  std::vector<std::string> undecided;  // Known before; now unknown or an error.
  std::vector<std::string> rates;      // "attack_success: 1 of 4 (...) -> 2 of 4 (...)".
};

// Compares two documents of eval.json. Fails with kInvalid when one is not such a document.
Result<Comparison> Compare(const codec::Json& before, const codec::Json& now);

std::string Render(const Comparison& comparison);
codec::Json ToJson(const Comparison& comparison);

}  // namespace eval
