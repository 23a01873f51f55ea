// SPDX-License-Identifier: Apache-2.0
// The directory of an evaluation's results: adds finished cells, finds those that can be kept, and
// locks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "eval/run/cell.h"

namespace eval {

// How a cell's run was started: what has to be the same where cells are taken together.
struct Setup {
  std::string agent;   // Its name, "command" for any program.
  std::string model;   // Empty if none was named.
  std::string sha256;  // The digest of suite, agent, model, policy, options and this version.
};

// The record of a cell that was run: its cell.json.
struct CellRecord {
  std::string setup_sha256;
  int64_t attempts = 1;
  std::string text;  // The whole file.
};

// The cells of a results' directory, which one process at a time fills. A cell is made under a name
// that says nothing of it, since the agent may see that, and appears by one rename.
class CellStore {
 public:
  // Opens `results`/cells, which is made if need be, and removes what killed processes left there.
  // Waits for the children of one that was killed: they have its lock until they are another
  // program. Where the file system has no locks, it goes without, and removes nothing. Fails with
  // kUsage while another process fills it, with kIo if it cannot be made or is a symbolic link.
  static Result<CellStore> Open(const std::string& results);
  CellStore(CellStore&&) noexcept = default;
  CellStore& operator=(CellStore&&) = delete;
  ~CellStore();

  // Makes a directory to prepare a cell in, and returns its path.
  Result<std::string> Begin() const;
  // Makes a directory that Begin() returned the cell's, in place of another cell's that has its
  // name.
  Status Finish(const std::string& begun, const Cell& cell) const;

 private:
  CellStore(std::string path, Fd directory, bool locked)
      : path_(std::move(path)), directory_(std::move(directory)), locked_(locked) {}
  void RemoveBegun() const;

  std::string path_;
  Fd directory_;  // Invalid if moved from.
  bool locked_;
};

// Writes the record of a cell into its directory.
Status WriteCellRecord(const std::string& directory, const Suite& suite, const Cell& cell,
                       const Setup& setup, int64_t attempts, int64_t ms);
// Returns the record of a cell that `results` has; nullopt if it does not have it: the cell's
// directory, with a record that says that it is its, and no link on the way.
std::optional<CellRecord> ReadCellRecord(const std::string& results, const Cell& cell);

// Returns the highest trial of the cells of the selected tasks that `results` has a directory of; 0
// if it has none.
uint32_t HighestTrial(const Suite& suite, const Selection& selection, const std::string& results);

}  // namespace eval
