// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/run/cell.h"

namespace eval {

// Copies the cells that results' directories in `parts` have (shards, of other machines perhaps) to
// `results`, each by one rename; a cell that is there already stays. Fails with kInvalid for a cell
// that two parts have, with kNotFound for a part without cells, and with kIo when a cell cannot be
// copied; what was copied stays.
Status MergeCells(const std::vector<Cell>& cells, const std::vector<std::string>& parts,
                  const std::string& results);

}  // namespace eval
