// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/grade/result.h"
#include "eval/suite/suite.h"

namespace eval {

// A cell whose evidence lies in `directory`.
struct StoredCell {
  const UserTask* user = nullptr;
  const InjectionTask* injection = nullptr;
  int64_t trial = 1;
  std::string directory;
  std::vector<std::string> markers;
  bool in_prompt = false;
};

// Grades it. Total: evidence that cannot be read is missing evidence.
CellResult GradeCell(const Suite& suite, const StoredCell& cell, std::vector<std::string>* notes);

}  // namespace eval
