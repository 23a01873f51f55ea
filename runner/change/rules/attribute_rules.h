// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace change {

// What a .gitattributes says of the attributes that decide how git converts a file. It belongs to
// the pull request, and libgit2 follows it without a bound: patterns with many `**` take
// exponential time.
struct AskedAttributes {
  std::string text;  // The lines that may set one of them; all others are left out.
  // The cost of matching one path against these lines, in units of about one plain line.
  int64_t cost = 0;
  size_t costly_line = 0;  // The first that is too much alone, from 1 on in the whole; 0 if none.
};

// Above this, attributes are not asked.
inline constexpr int64_t kAttributeCostMax = 20000;

// `macros` are the names that MacrosOf() gives for the files which count. A text of more than
// kIgnoreBytesMax costs too much.
AskedAttributes TakeAsked(std::string_view text, const std::set<std::string>& macros);

// Returns the names that a file defines with `[attr]`.
std::set<std::string> MacrosOf(std::string_view text);

}  // namespace change
