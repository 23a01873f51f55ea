// SPDX-License-Identifier: Apache-2.0
// Classes of ASCII characters, independent of the locale. Any other byte belongs to none of them.
#pragma once

#include <string>
#include <string_view>

namespace ascii {

constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsAlpha(char c) { return IsUpper(c) || IsLower(c); }
constexpr bool IsAlphanumeric(char c) { return IsAlpha(c) || IsDigit(c); }
// Bytes below 0x20, and DEL.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// True for a run of digits, such as "0" and "007"; false for "".
constexpr bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

constexpr char ToLower(char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ToLower(c);
  return lower;
}

// `text` without the blanks, tabs and line ends around it.
constexpr std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

constexpr char ToUpper(char c) { return IsLower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

inline std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = ToUpper(c);
  return upper;
}

// Returns whether `name` is a valid name of an environment variable (POSIX.1-2017, 8.1).
constexpr bool IsVariableName(std::string_view name) {
  for (const char c : name) {
    if (!IsAlphanumeric(c) && c != '_') return false;
  }
  return !name.empty() && !IsDigit(name.front());
}

// The value of a hexadecimal digit of either case; -1 for any other character.
constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  char lower = ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace ascii
