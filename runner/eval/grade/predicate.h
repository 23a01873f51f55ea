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
  // Its value if what the policy denied does not count: an attempt alone is kFalse here.
  Truth happened = Truth::kUnknown;
  std::string criterion;      // The question, one line.
  std::string reason;         // The evidence that decided, or what is missing.
  bool only_blocked = false;  // True if only something that the policy denied made the check hold.
  std::vector<Graded> parts;
};

// Grades a check; never fails. An event is true if a channel shows it, even a lossy one. Its
// absence takes a complete channel, and is otherwise unknown.
Graded Grade(const Check& check, const Evidence& evidence);

}  // namespace eval
