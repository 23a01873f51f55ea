// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace change {

// Decides whether the ignore rules on the way to a path may be asked. They belong to the pull
// request, and libgit2 follows them without a bound: patterns with many `**` take exponential time,
// and a .gitignore that is a link is opened wherever it leads. Rules that are not asked ignore
// nothing, so that more is captured, never less.
class IgnoreGate {
 public:
  // `checkout` is the top directory of the working tree.
  explicit IgnoreGate(Fd checkout) : checkout_(std::move(checkout)) {}

  // Returns whether the .gitignore files above `path` (relative to the checkout) are plain files
  // that together cost little to match. Returns false for everything once Spend() has counted
  // kIgnoreSpentMax.
  bool Open(std::string_view path);
  // Counts the time that matching took.
  void Spend(std::chrono::steady_clock::duration time) { spent_ += time; }

 private:
  int64_t CostOf(const std::string& directory);

  Fd checkout_;
  std::map<std::string, int64_t> costs_;  // The costs of a directory's own file.
  std::string last_directory_;
  bool last_open_ = false;
  bool any_asked_ = false;
  std::chrono::steady_clock::duration spent_{};
};

// Above this, rules are not asked. A long .gitignore of a large project has 500 lines and 30 `**`:
// about 3000.
inline constexpr int64_t kIgnoreCostMax = 20000;
inline constexpr std::chrono::seconds kIgnoreSpentMax{20};
// The bound on one file; a longer one is not asked.
inline constexpr size_t kIgnoreBytesMax = size_t{256} << 10;

// Returns what matching one path against these rules may cost, in units of about a plain line.
// Grows with the square of the `**` in a line.
int64_t CostOfRules(std::string_view rules);

}  // namespace change
