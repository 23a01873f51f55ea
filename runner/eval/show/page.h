// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/grade/result.h"

namespace eval {

// Renders eval.html: one self-contained file without scripts. The matrix of tasks and injections,
// the rates and each cell's evidence. Links lead to the reports of the runs beside it.
std::string RenderPage(const Results& results);

}  // namespace eval
