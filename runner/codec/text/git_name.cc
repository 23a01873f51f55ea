// SPDX-License-Identifier: Apache-2.0
#include "codec/text/git_name.h"

#include <charconv>

namespace codec {
namespace {

// Takes the three octal digits of a byte off the front of `text`.
std::optional<char> TakeOctal(std::string_view& text) {
  std::string_view digits = text.substr(0, 3);
  unsigned value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + 3 || value > 255) return std::nullopt;
  text.remove_prefix(3);
  return static_cast<char>(value);
}

// Takes a quoted name off the front of `text`.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  if (!text.starts_with('"')) return std::nullopt;
  text.remove_prefix(1);
  std::string name;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '"') return name;
    if (c != '\\') {
      name += c;
      continue;
    }
    if (text.empty()) return std::nullopt;
    constexpr std::string_view kLetters = "abtnvfr\"\\";
    constexpr std::string_view kMeanings = "\a\b\t\n\v\f\r\"\\";
    size_t letter = kLetters.find(text.front());
    if (letter != std::string_view::npos) {
      name += kMeanings[letter];
      text.remove_prefix(1);
      continue;
    }
    std::optional<char> byte = TakeOctal(text);
    if (!byte) return std::nullopt;
    name += *byte;
  }
  return std::nullopt;
}

std::optional<std::string> SameName(std::string_view first, std::string_view second) {
  const bool same =
      first.starts_with("a/") && second.starts_with("b/") && first.substr(2) == second.substr(2);
  return same ? std::optional(std::string(first.substr(2))) : std::nullopt;
}

}  // namespace

std::optional<std::string> UnquoteGitName(std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  std::optional<std::string> name = TakeQuoted(text);
  if (!text.empty()) return std::nullopt;
  return name;
}

std::optional<std::string> NameOfDiff(std::string_view text) {
  if (text.starts_with('"')) {
    std::optional<std::string> first = TakeQuoted(text);
    if (!first.has_value() || !text.starts_with(' ')) return std::nullopt;
    std::optional<std::string> second = UnquoteGitName(text.substr(1));
    return second ? SameName(*first, *second) : std::nullopt;
  }
  size_t half = text.size() / 2;
  if (text.size() < 7 || text.size() % 2 == 0 || text[half] != ' ') return std::nullopt;
  return SameName(text.substr(0, half), text.substr(half + 1));
}

}  // namespace codec
