// SPDX-License-Identifier: Apache-2.0
// Runs cells, each by this program itself in a process of its own, and leaves their evidence
// behind.
#pragma once

#include <vector>

#include "base/result.h"
#include "eval/run/cell.h"
#include "eval/run/run_plan.h"

namespace eval {

// Runs those of `cells` that `plan.results` does not have yet. A cell's directory, cells/NAME,
// appears by one rename when it is complete: a process that is killed at any moment leaves whole
// cells, and the rest is run again. A cell that cannot be set up or stored is left out, and the
// others are run: the first such failure is returned at the end. Fails with kUsage, and runs
// nothing, while another process fills the directory, and if it has one of the cells, unless that
// is to be kept and was run in the same way (Setup); with kIo if it cannot be opened.
Status RunCells(const Suite& suite, const std::vector<Cell>& cells, const RunPlan& plan);

}  // namespace eval
