// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "eval/run/cell.h"

namespace eval {

// Copies the cells that results' directories in `parts` have (shards, of other machines perhaps) to
// `results`, each by one rename: regular files alone. Those that `results` has of the same run are
// passed over, so that a merge can be repeated. Nothing is copied if a cell is in two of them
// otherwise, or if two were run in different ways (Setup): that fails with kInvalid. Fails as
// FindResults() does for a part, with kNotFound for one without cells, with kUsage while another
// process fills `results`, and with kIo when a cell cannot be copied; what was copied stays.
// Returns the files that were left out.
Result<std::vector<std::string>> MergeCells(const std::vector<Cell>& cells,
                                            const std::vector<std::string>& parts,
                                            const std::string& results);

}  // namespace eval
