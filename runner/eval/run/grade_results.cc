// SPDX-License-Identifier: Apache-2.0
#include "eval/run/grade_results.h"

#include <errno.h>
#include <fcntl.h>

#include <optional>
#include <set>

#include "base/sys.h"
#include "eval/evidence/grade_cells.h"
#include "eval/evidence/remote_record.h"
#include "eval/run/cell_store.h"

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
  std::set<std::string> setups;
  bool elsewhere = false;
  for (const Cell& cell : cells) {
    std::optional<CellRecord> record = ReadCellRecord(directory, cell);
    if (!record) {
      results.missing.push_back(cell.Name());
      continue;
    }
    if (LeadsElsewhere(directory, "cells/" + cell.Name() + "/report")) {
      results.missing.push_back(cell.Name());
      results.notes.push_back(cell.Name() + ": a symbolic link is in the place of its report");
      continue;
    }
    StoredCell stored{cell.user,
                      cell.injection,
                      cell.trial,
                      directory + "/cells/" + cell.Name(),
                      MarkersOfCell(suite, cell),
                      HasPayloadInPrompt(cell)};
    elsewhere = elsewhere || sys::Exists(stored.directory + "/" + kRemoteFile);
    CellResult& graded = results.cells.emplace_back(GradeCell(suite, stored, &results.notes));
    graded.attempts = record->attempts;
    graded.setup = record->setup_sha256;
    setups.insert(record->setup_sha256);
    if (record->attempts > 1) {
      results.notes.push_back(cell.Name() + ": the agent did not start at the first attempt");
    }
  }
  if (elsewhere) {
    results.notes.push_back("the agent ran elsewhere, and without evidence of " +
                            std::string(kSandboxChannels));
  }
  if (setups.size() > 1) {
    results.notes.push_back(
        "the cells were run in " + std::to_string(setups.size()) +
        " ways: with another suite, agent, model, policy or option, or by another version");
  }
  return results;
}

}  // namespace eval
