// SPDX-License-Identifier: Apache-2.0
// Plans an evaluation: which cells a suite has, and which of them a selection or a shard runs.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "eval/suite/suite.h"

namespace eval {

// One run of one user task, with one injection task or none.
struct Cell {
  const UserTask* user = nullptr;
  const InjectionTask* injection = nullptr;  // Null for the control.
  uint32_t trial = 1;

  // Returns "USER,INJECTION,TRIAL", which also names its directory; the injection of a control is
  // empty.
  std::string Name() const;
};

// The selection of a suite's cells to run.
struct Selection {
  std::vector<std::string> users;       // Empty for all.
  std::vector<std::string> injections;  // Empty for all.
  uint32_t trials = 0;                  // if 0, as the suite says.
  uint32_t shard = 1;                   // From 1.
  uint32_t shards = 1;                  // At most kShardsMax.
};
inline constexpr uint32_t kShardsMax = 1000;

// Reads "I/N" into `selection`. Returns false if it is not that.
bool ParseShard(std::string_view text, Selection* selection);

// The most cells of a plan, before it is divided into shards: each has a directory, a run and a
// line in every result.
inline constexpr uint32_t kCellsMax = 100000;

// Returns every user task without an injection and with each, trial by trial, each once. The cells
// borrow from `suite`. Fails with kUsage for a task that does not exist (the hint is the nearest
// one), with kInvalid for more than kCellsMax cells.
Result<std::vector<Cell>> PlanCells(const Suite& suite, const Selection& selection);

// Texts by which the payload of a cell is recognised in what models are sent.
std::vector<std::string> MarkersOfCell(const Suite& suite, const Cell& cell);
// Texts that a check of the suite looks for in what servers are sent, without repetition.
std::vector<std::string> SentTextsOf(const Suite& suite);
// Returns whether its task has a payload in it.
bool HasPayloadInPrompt(const Cell& cell);

}  // namespace eval
