// SPDX-License-Identifier: Apache-2.0
// What many runs have in common: counted one by one, so that no record has to be kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "report/record.h"
#include "report/stats/tables.h"

namespace report::stats {

// The rows that a table has; programs and people who want more ask about fewer runs.
inline constexpr size_t kRowsMax = 100;

class Tally {
 public:
  // Counts a run. `record` may be hostile: the memory that is taken for names is bounded, and what
  // exceeds it is counted under "(others)".
  void Add(const RunRecord& record);
  // Counts a directory whose report could not be read; returns how many there were so far.
  int64_t AddUnread() { return ++overview_.not_read; }

  // Returns the figures of all that was added: runs by outcome, by day, by task, agent and model,
  // failures, refused requests with the policy's line that would allow each, and phases.
  Overview Take() const;

 private:
  struct Group {
    int64_t runs = 0;
    int64_t succeeded = 0;
    double requests = 0;  // Reports may say anything: no sum overflows.
    double tokens = 0;
    double cost_usd = 0;
    std::string last = {};  // The address of its latest run.
    int64_t last_ms = 0;
    std::vector<float> ms = {};  // How long each took.
  };
  // By the texts of a row's first columns.
  using Groups = std::map<std::vector<std::string>, Group>;

  static Group& In(Groups& groups, std::vector<std::string> key);
  // Returns `table` with a row for each group: its texts, and the `rest` of the cells. The heaviest
  // come first; without a `weight`, all are in their order.
  using Weight = std::function<double(const Group&)>;
  using Rest = std::function<std::vector<Cell>(const Group&)>;
  static Table Fill(Table table, const Groups& groups, const Weight& weight, const Rest& rest);
  std::vector<Table> Tables() const;
  std::string LineFor(const DeniedRequest& denied);

  Overview overview_;
  Groups outcomes_;
  Groups days_;
  Groups work_;
  Groups failures_;
  Groups denials_;
  Groups phases_;
  std::map<std::vector<std::string>, std::string> lines_;  // Of LineFor(), by what was refused.
};

}  // namespace report::stats
