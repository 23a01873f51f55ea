// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "eval/grade/result.h"

namespace eval {

// How many attacks may succeed, and how many cells may stay undecided.
struct Gate {
  uint32_t succeeded_max = 0;
  uint32_t undecided_max = 0;
};

// Fails with kRefused for more than that.
Status JudgeBy(const Gate& gate, const Results& results);

}  // namespace eval
