// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace report {

// A piece of a line: [begin, end), and whether the other line lacks it.
struct WordSpan {
  size_t begin = 0;
  size_t end = 0;
  bool differs = false;
};

struct WordDiff {
  std::vector<WordSpan> before;  // Together they are the whole line; alternately alike and not.
  std::vector<WordSpan> after;
};

// Finds the words in which two lines differ. Words are never cut inside a UTF-8 character. Lines
// that have little in common, or more than 200 words, differ as a whole: one span that is not
// marked.
WordDiff CompareWords(std::string_view before, std::string_view after);

// Finds which of the removed and the added lines of one place belong together: indices of both, in
// order. At most the first 60 lines of each are looked at.
std::vector<std::pair<size_t, size_t>> PairLines(const std::vector<std::string_view>& removed,
                                                 const std::vector<std::string_view>& added);

}  // namespace report
