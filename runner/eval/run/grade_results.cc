// SPDX-License-Identifier: Apache-2.0
#include "eval/run/grade_results.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "eval/evidence/grade_cells.h"
#include "eval/run/run_cells.h"

namespace eval {

namespace {

// Results may come from another job, and a link in them lead to any file of this machine.
bool LeadsElsewhere(const std::string& directory, const std::string& path) {
  Result<Fd> top = sys::Open(directory, O_PATH | O_DIRECTORY);
  if (!top.ok()) return false;
  Result<Fd> there = sys::OpenBeneath(top.value().get(), path, O_PATH | O_DIRECTORY);
  return !there.ok() && there.error().os_error == ELOOP;
}

}  // namespace

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
    if (LeadsElsewhere(directory, "cells/" + cell.Name() + "/report")) {
      results.missing.push_back(cell.Name());
      results.notes.push_back(cell.Name() + ": a symbolic link stands in the way of its report");
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
