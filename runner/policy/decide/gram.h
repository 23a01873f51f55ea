// SPDX-License-Identifier: Apache-2.0
// The inside of compiled policies: patterns that begin with a star, or all end alike, are found by
// three bytes in a row that everything they match must hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace policy {

// Stands in front of every value, so that the first two bytes of one are a gram as well.
inline constexpr char kGramStart = '\1';

// Calls `visit` with every gram of `text`, in order.
template <typename Visit>
void ForEachGram(bool at_start, std::string_view text, Visit visit) {
  uint64_t gram = at_start ? static_cast<uint64_t>(kGramStart) : 0;
  size_t bytes = at_start ? 1 : 0;
  for (char c : text) {
    gram = (gram << 8 | static_cast<uint8_t>(c)) & 0xFFFFFF;
    if (++bytes >= 3) visit(gram);
  }
}

// Chooses for each pattern of a list what to look it up by. First all are counted.
class GramChoice {
 public:
  explicit GramChoice(char delimiter) : delimiter_(delimiter) {}

  // `key`: what else the pattern could be found by.
  void Count(std::string_view pattern, uint64_t key);
  // The rarest gram of a pattern, if it is rarer than `key` is; nothing: take the key.
  std::optional<uint64_t> Find(std::string_view pattern, uint64_t key) const;

 private:
  std::vector<uint64_t> GramsOf(std::string_view pattern) const;

  char delimiter_;
  std::unordered_map<uint64_t, size_t> patterns_by_gram_;
  std::unordered_map<uint64_t, size_t> patterns_by_key_;
};

}  // namespace policy
