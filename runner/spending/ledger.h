// SPDX-License-Identifier: Apache-2.0
// What the runs of a repository have spent on models, and what its budgets leave for the next one.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spending {

// A forge gives no larger file (forge::Forge::ReadFile).
inline constexpr size_t kLedgerBytesMax = size_t{1} << 20;
// A run that has less than a cent left does not start: its first answer would end it.
inline constexpr double kLeastUsd = 0.01;

// The budgets across runs, in US dollars; 0: none.
struct Limits {
  double per_day = 0;
  double per_pull_request = 0;

  bool any() const { return per_day > 0 || per_pull_request > 0; }
};

// What one run has spent, or may.
struct Spent {
  std::string id;      // 32 hexadecimal digits.
  std::string day;     // As DayOf().
  int64_t number = 0;  // The pull request that it was for; 0 for none.
  double usd = 0;
  bool open = false;  // It goes on: `usd` is reserved for it.
};

struct Ledger {
  std::vector<Spent> runs;              // Of the last two days, oldest first.
  std::map<int64_t, double> proposals;  // What earlier runs spent, by their pull request.
};

// Returns the day of that moment, in UTC: "2026-12-01".
std::string DayOf(std::time_t now);

// Returns whether `id` can be a run's.
bool ValidId(std::string_view id);

// Fails with kInvalid for anything that RenderLedger() does not write.
Result<Ledger> ParseLedger(std::string_view text);
std::string RenderLedger(const Ledger& ledger);

// What is left for a run.
struct Left {
  double usd = 0;  // Of the budget that leaves least; can be below zero.
  double limit = 0;
  bool of_day = false;  // That budget is the day's, not the pull request's.
  double open = 0;      // The part of what is gone that runs have reserved that go on.
};
// `limits` has one. A run for no pull request (0) has the day's budget alone; without that, all of
// the other.
Left FindLeft(const Ledger& ledger, const Limits& limits, const std::string& day, int64_t number);

// Returns the reason for which a run with so little left does not start: "the budget of the day is
// used up: $20.00 of $20.00 are spent, ...".
std::string DescribeUsedUp(const Left& left);

// Enters `spent` in place of what was entered for its id. What a run has spent, once it is said,
// never becomes less: a report could say so of another run. Sums up what is older than the day
// before `today`. Returns whether the ledger has changed.
bool Enter(Ledger* ledger, const Spent& spent, const std::string& today);

}  // namespace spending
