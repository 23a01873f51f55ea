// SPDX-License-Identifier: Apache-2.0
#include "report/word_diff.h"

#include <algorithm>
#include <cstdint>

#include "base/ascii.h"

namespace report {
namespace {

constexpr size_t kWordsMax = 200;
constexpr size_t kLinesMax = 60;
// The share of a line's bytes in common from which marking the rest helps a reader.
constexpr double kAlikeMin = 0.3;
constexpr double kPairMin = 0.5;

bool IsWordByte(char c) {
  return ascii::IsAlphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

// Words, runs of blanks, and every other character alone.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    const bool word = IsWordByte(line[at]);
    const bool blank = line[at] == ' ' || line[at] == '\t';
    while (end < line.size() && ((word && IsWordByte(line[end])) ||
                                 (blank && (line[end] == ' ' || line[end] == '\t')))) {
      ++end;
    }
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<WordSpan> Whole(std::string_view line) { return {{0, line.size(), false}}; }

// Joins neighbours that are alike.
void Append(size_t bytes, bool differs, std::vector<WordSpan>* spans) {
  const size_t begin = spans->empty() ? 0 : spans->back().end;
  if (!spans->empty() && spans->back().differs == differs) {
    spans->back().end += bytes;
  } else {
    spans->push_back({begin, begin + bytes, differs});
  }
}

// The table of the longest common subsequence, weighted by bytes: cell (i, j) is about what follows
// word i of one and word j of the other.
class Common {
 public:
  Common(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b)
      : width_(b.size() + 1), cells_((a.size() + 1) * width_, 0) {
    for (size_t i = a.size(); i-- > 0;) {
      for (size_t j = b.size(); j-- > 0;) {
        cells_[i * width_ + j] = a[i] == b[j]
                                     ? At(i + 1, j + 1) + static_cast<uint32_t>(a[i].size())
                                     : std::max(At(i + 1, j), At(i, j + 1));
      }
    }
  }
  uint32_t At(size_t i, size_t j) const { return cells_[i * width_ + j]; }

 private:
  size_t width_;
  std::vector<uint32_t> cells_;
};

// Bytes alike at both ends: what a quick look compares.
double Likeness(std::string_view a, std::string_view b) {
  a = ascii::Trimmed(a);
  b = ascii::Trimmed(b);
  const size_t shorter = std::min(a.size(), b.size());
  size_t front = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  size_t back = 0;
  while (back < shorter - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  const size_t longer = std::max(a.size(), b.size());
  return longer == 0 ? 0 : static_cast<double>(front + back) / static_cast<double>(longer);
}

}  // namespace

WordDiff CompareWords(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = Words(before);
  const std::vector<std::string_view> b = Words(after);
  if (a.size() > kWordsMax || b.size() > kWordsMax) return {Whole(before), Whole(after)};
  const Common common(a, b);
  const auto longer = static_cast<double>(std::max<size_t>({before.size(), after.size(), 1}));
  if (common.At(0, 0) / longer < kAlikeMin) return {Whole(before), Whole(after)};
  WordDiff diff;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      Append(a[i++].size(), false, &diff.before);
      Append(b[j++].size(), false, &diff.after);
    } else if (j == b.size() || (i < a.size() && common.At(i + 1, j) >= common.At(i, j + 1))) {
      Append(a[i++].size(), true, &diff.before);
    } else {
      Append(b[j++].size(), true, &diff.after);
    }
  }
  return diff;
}

std::vector<std::pair<size_t, size_t>> PairLines(const std::vector<std::string_view>& removed,
                                                 const std::vector<std::string_view>& added) {
  std::vector<std::pair<size_t, size_t>> pairs;
  const size_t lines = std::min(removed.size(), kLinesMax);
  if (removed.size() == added.size()) {
    for (size_t i = 0; i < lines; ++i) pairs.emplace_back(i, i);
    return pairs;
  }
  size_t next = 0;
  for (size_t i = 0; i < lines; ++i) {
    for (size_t j = next; j < std::min(added.size(), kLinesMax); ++j) {
      if (Likeness(removed[i], added[j]) < kPairMin) continue;
      pairs.emplace_back(i, j);
      next = j + 1;
      break;
    }
  }
  return pairs;
}

}  // namespace report
