// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/grade/result.h"
#include "eval/run/cell.h"

namespace eval {

// Grades what `directory` has of `cells`; the others are missing.
Results GradeResults(const Suite& suite, const std::vector<Cell>& cells,
                     const std::string& directory);
}  // namespace eval
