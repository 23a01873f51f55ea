// SPDX-License-Identifier: Apache-2.0
// Runs cells, each by this program itself in a process of its own, and leaves their evidence
// behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "eval/run/cell.h"
#include "eval/run/cell_store.h"

namespace eval {

struct RunPlan {
  std::string results;               // The directory of all results, absolute.
  std::vector<std::string> options;  // For `run`, as on its command line: "--agent", "pi", ...
  std::vector<std::string> command;  // Instead of the suite's agent; the task is appended.
  bool names_agent = false;          // `options` do.
  bool names_policy = false;         // Likewise.
  bool resume = false;               // Keep the cells that `results` has.
  bool native = true;                // In agentic-ci's own sandbox, which records more.
  std::string policy;                // The policy's text, where this program has to add to it.
  uint32_t jobs = 1;                 // Cells at the same time.
  uint32_t retries = 1;              // The retries of a run that failed before its agent ran.
  // The environment of the runs.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string search_path;  // PATH.
  Setup setup;
  // Called for each cell that is done, by one thread at a time: its name, why it could not be run
  // (null if it was), and how many are left.
  std::function<void(const std::string& name, const Error* failure, size_t left)> done;
};

// Runs those of `cells` that `plan.results` does not have yet. A cell's directory, cells/NAME,
// appears by one rename when it is complete: a process that is killed at any moment leaves whole
// cells, and the rest is run again. A cell that cannot be set up or stored is left out, and the
// others are run: the first such failure is returned at the end. Fails with kUsage, and runs
// nothing, while another process fills the directory, and if it has one of the cells, unless that
// is to be kept and was run in the same way (Setup); with kIo if it cannot be opened.
Status RunCells(const Suite& suite, const std::vector<Cell>& cells, const RunPlan& plan);

}  // namespace eval
