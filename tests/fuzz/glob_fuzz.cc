// SPDX-License-Identifier: Apache-2.0
// Globs: "PATTERN newline VALUE". The same pattern in other words matches the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/glob/glob.h"

namespace {

bool Has(std::string_view text, std::string_view characters) {
  return text.find_first_of(characters) != std::string_view::npos;
}

// `glob` is `pattern`. Usual shapes of patterns are matched without the machine; a class of one
// letter instead of that letter has the machine do it.
void CheckPattern(const codec::Glob& glob, const std::string& pattern, const std::string& value,
                  char delimiter) {
  if (Has(pattern, "[]{}\\")) return;
  if (!Has(pattern, "*?")) ENSURE(glob.Matches(value) == (pattern == value));
  size_t letter = 0;
  while (letter < pattern.size() && (pattern[letter] < 'a' || pattern[letter] > 'z')) ++letter;
  if (letter == pattern.size() || pattern.size() > 2000) return;
  std::string other = pattern;
  other.replace(letter, 1, {'[', pattern[letter], ']'});
  Result<codec::Glob> machine = codec::Glob::Parse(other, delimiter);
  ENSURE(machine.ok() && machine.value().Matches(value) == glob.Matches(value));
}

void CheckDialect(const std::string& pattern, const std::string& value, char delimiter) {
  Result<codec::Glob> glob = codec::Glob::Parse(pattern, delimiter);
  ENSURE(codec::GlobMatches(pattern, value, delimiter) ==
         (glob.ok() && glob.value().Matches(value)));
  const bool has_zero = value.find('\0') != std::string::npos;
  if (glob.ok() && has_zero) ENSURE(!glob.value().Matches(value));
  if (has_zero) return;
  if (glob.ok()) CheckPattern(glob.value(), pattern, value, delimiter);
  // Each byte of the value behind a backslash is that value.
  if (value.size() > 1000 || Has(value, "*")) return;
  std::string escaped;
  for (char c : value) escaped += {'\\', c};
  Result<codec::Glob> literal = codec::Glob::Parse(escaped, delimiter);
  ENSURE(literal.ok() && literal.value().Matches(value));
  ENSURE(!literal.value().Matches(value + "x"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\n'), size);
  const std::string pattern(input.substr(0, end));
  const std::string value(input.substr(std::min(end + 1, size)));
  for (char delimiter : {'/', '.'}) CheckDialect(pattern, value, delimiter);
  Result<codec::Glob> crossing = codec::Glob::ParseCrossing(pattern);
  const bool matches = codec::PathSelectorMatches(pattern, value);
  if (pattern.empty() || pattern == "**" || pattern == "/**") ENSURE(matches);
  if (!crossing.ok() && !pattern.ends_with("/**")) ENSURE(matches == (pattern == value));
  return 0;
}
