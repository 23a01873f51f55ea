// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/grade/evidence.h"
#include "eval/grade/truth.h"
#include "eval/suite/check.h"

namespace eval {

// A check and what it came to. Every part is evaluated, for the report.
struct Graded {
  Truth value = Truth::kUnknown;
  std::string criterion;      // What was asked, one line.
  std::string reason;         // What decided: the evidence, or what is missing.
  bool only_blocked = false;  // True by something that the policy denied, and by nothing else.
  std::vector<Graded> parts;
};

// Total: never fails. What happened is true on a channel that shows it, even on a lossy one; that
// it did not happen takes a complete channel, and is otherwise unknown.
Graded Grade(const Check& check, const Evidence& evidence);

}  // namespace eval
