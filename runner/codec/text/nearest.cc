// SPDX-License-Identifier: Apache-2.0
#include "codec/text/nearest.h"

#include <algorithm>

namespace codec {
namespace {

constexpr size_t kComparedBytesMax = 64;

// Optimal string alignment: Levenshtein's distance with swaps of neighbours.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.empty() || name.size() > kComparedBytesMax) return "";
  std::string_view nearest;
  size_t nearest_distance =
      std::max<size_t>(1, name.size() / 3) + 1;  // One error in three letters.
  for (std::string_view candidate : candidates) {
    if (candidate.size() > kComparedBytesMax) continue;
    size_t distance = Distance(name, candidate);
    if (distance >= nearest_distance) continue;
    nearest = candidate;
    nearest_distance = distance;
  }
  return std::string(nearest);
}

}  // namespace codec
