// SPDX-License-Identifier: Apache-2.0
#include "change/rules/attribute_rules.h"

#include <algorithm>

#include "change/rules/ignore_file.h"

namespace change {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kMacro = "[attr]";
constexpr int64_t kTooMuch = kAttributeCostMax + 1;
// The stars of one line. With three `**`, a path of 128 directories takes libgit2 half a second at
// worst; a fourth multiplies that by thirty.
constexpr int64_t kDoubleStarsMax = 3;
constexpr int64_t kStarsMax = 12;

int64_t CostOf(std::string_view pattern) {
  int64_t doubles = 0;
  int64_t stars = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '*') continue;
    const bool twice = i + 1 < pattern.size() && pattern[i + 1] == '*';
    ++(twice ? doubles : stars);
    if (twice) ++i;
  }
  if (doubles > kDoubleStarsMax || stars > kStarsMax) return kTooMuch;
  return 1 + 64 * doubles * doubles + 4 * stars;
}

// Takes the first word off; empty at the end of the line.
std::string_view TakeWord(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

// "-text" and "text=auto" -> "text".
std::string_view NameOf(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("-!"), word.size()));
  return word.substr(0, word.find('='));
}

// Says whether what is behind the pattern sets one. A quoted pattern with blanks in it counts as
// attributes, too, which keeps more lines and not fewer.
bool SetsAsked(std::string_view words, const std::set<std::string>& macros) {
  constexpr std::string_view kAsked[] = {"text",   "crlf",  "eol", "ident", "working-tree-encoding",
                                         "filter", "binary"};
  for (std::string_view word = TakeWord(&words); !word.empty(); word = TakeWord(&words)) {
    const std::string_view name = NameOf(word);
    if (std::find(std::begin(kAsked), std::end(kAsked), name) != std::end(kAsked)) return true;
    if (macros.contains(std::string(name))) return true;
  }
  return false;
}

std::string_view TakeLine(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

}  // namespace

AskedAttributes TakeAsked(std::string_view text, const std::set<std::string>& macros) {
  AskedAttributes asked;
  if (text.size() > kIgnoreBytesMax) asked.cost = kTooMuch;
  for (size_t number = 1; !text.empty() && asked.cost <= kAttributeCostMax; ++number) {
    const std::string_view line = TakeLine(&text);
    std::string_view rest = line;
    const std::string_view pattern = TakeWord(&rest);
    if (pattern.empty() || pattern.starts_with('#')) continue;
    const bool defines = pattern.starts_with(kMacro);
    if (!defines && !SetsAsked(rest, macros)) continue;
    const int64_t cost = defines ? 1 : CostOf(pattern);
    if (cost > kAttributeCostMax) asked.costly_line = number;
    asked.cost = std::min(asked.cost + cost, kTooMuch);
    (asked.text += line) += '\n';
  }
  return asked;
}

std::set<std::string> MacrosOf(std::string_view text) {
  std::set<std::string> names;
  while (!text.empty()) {
    std::string_view line = TakeLine(&text);
    std::string_view name = TakeWord(&line);
    if (!name.starts_with(kMacro)) continue;
    name.remove_prefix(kMacro.size());
    if (name.empty()) name = TakeWord(&line);
    names.emplace(name);
  }
  return names;
}

}  // namespace change
