// SPDX-License-Identifier: Apache-2.0
// Regular expressions in linear time: the text may be hostile. The syntax of Python's `re` without
// what needs backtracking (back references, look-around), which is refused.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace codec {

// Bytes, not characters: `.` is any byte but a line end. A character beyond ASCII may stand for
// itself, but not in a class.
class Regex {
 public:
  // Fails with kInvalid and what is wrong at which byte. At most 4096 bytes, and 20000 states:
  // repetitions are written out.
  static Result<Regex> Parse(std::string_view pattern);

  // Returns whether it matches anywhere in `text`. Takes at most states times bytes steps.
  bool Search(std::string_view text) const;

 private:
  friend class RegexCompiler;

  enum class Op : uint8_t { kSet, kSplit, kBegin, kEnd, kWordEdge, kNoWordEdge, kMatch };
  struct State {
    Op op = Op::kMatch;
    uint32_t next = 0;
    uint32_t other = 0;  // kSplit: the second way. kSet: the index of the set.
  };
  class Threads;

  bool Holds(Op op, std::string_view text, size_t at) const;

  std::vector<State> states_;
  std::vector<std::bitset<256>> sets_;
  uint32_t start_ = 0;
};

}  // namespace codec
