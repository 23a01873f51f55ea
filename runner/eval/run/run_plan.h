// SPDX-License-Identifier: Apache-2.0
// Plans how the cells of an evaluation are run: with which options of `run`, in which environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "eval/run/cell_store.h"
#include "eval/run/remote_run.h"
#include "eval/suite/suite.h"

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
  std::optional<RemoteRun> remote;  // If the agent runs elsewhere: no cell has a sandbox.
  // Called for each cell that is done, by one thread at a time: its name, why it could not be run
  // (null if it was), and how many are left.
  std::function<void(const std::string& name, const Error* failure, size_t left)> done;
};

// An option of `run`, as it was given for all cells.
struct GivenOption {
  std::string name;  // Without the dashes.
  std::string value;
  bool is_file = false;  // The value names a file.
};

// The options of the command line that hold for every cell.
struct CellRequest {
  std::vector<GivenOption> options;  // Only those that TakenByCells().
  std::vector<std::string> command;  // Instead of the suite's agent.
  std::string model_host;            // HOST[:PORT] of the command's model, or empty.
  std::optional<RemoteRun> remote;   // The agent runs elsewhere.
};

// Returns whether a cell takes this option of `run` as it is given for the evaluation.
bool TakenByCells(std::string_view option);

// Returns the plan for cells of `suite`: its options, command, policy and Setup, and what follows
// from them; the other members have their defaults. Reads the files that options name. Warns if
// texts are watched for and the model's host is not known, and of what is unknown about an agent
// that runs elsewhere. Fails with kUsage if nothing names an agent, or if an agent that runs
// elsewhere cannot have an option or the suite's environment; with kUnsupported if the suite needs
// another backend, with kInvalid if its own agent needs what no option names, and with kNotFound or
// kInvalid for a file that cannot be read.
Result<RunPlan> PlanRuns(CellRequest request, const Suite& suite);

}  // namespace eval
