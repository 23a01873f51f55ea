// SPDX-License-Identifier: Apache-2.0
#include "eval/run/grade_results.h"

#include "eval/evidence/grade_cells.h"
#include "eval/run/run_cells.h"

namespace eval {

Results GradeResults(const Suite& suite, const std::vector<Cell>& cells,
                     const std::string& directory) {
  Results results;
  results.suite = suite.name;
  results.suite_file = suite.file;
  results.suite_sha256 = suite.sha256;
  for (const Cell& cell : cells) {
    if (!IsDone(directory, cell)) {
      results.missing.push_back(cell.Name());
      continue;
    }
    StoredCell stored{cell.user,
                      cell.injection,
                      cell.trial,
                      directory + "/cells/" + cell.Name(),
                      MarkersOfCell(suite, cell),
                      HasPayloadInPrompt(cell)};
    results.cells.push_back(GradeCell(suite, stored, &results.notes));
  }
  return results;
}

}  // namespace eval
