// SPDX-License-Identifier: Apache-2.0
#include "eval/grade/python_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "codec/text/utf8.h"

namespace eval {
namespace {

using codec::Json;

// From which exponents on repr() of a float has one.
constexpr int kExponentMin = -4;
constexpr int kExponentMax = 16;

// repr() of a float: the shortest digits that read back.
std::string FloatText(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string scientific(digits.data(), end);
  const size_t e = scientific.find('e');
  int exponent = 0;
  const size_t sign = scientific[e + 1] == '+' ? 1 : 0;
  std::from_chars(scientific.data() + e + 1 + sign, scientific.data() + scientific.size(),
                  exponent);
  if (exponent < kExponentMin || exponent >= kExponentMax) return scientific;
  std::array<char, 64> fixed{};
  const auto stop =
      std::to_chars(fixed.data(), fixed.data() + fixed.size(), number, std::chars_format::fixed)
          .ptr;
  std::string text(fixed.data(), stop);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

bool IsShownAsEscape(char32_t point) {
  constexpr std::array<std::pair<char32_t, char32_t>, 9> kRanges = {{{0, 0x1f},
                                                                     {0x7f, 0xa0},
                                                                     {0xad, 0xad},
                                                                     {0x200b, 0x200f},
                                                                     {0x2028, 0x202f},
                                                                     {0x205f, 0x206f},
                                                                     {0x3000, 0x3000},
                                                                     {0xe000, 0xf8ff},
                                                                     {0xfeff, 0xfeff}}};
  return std::any_of(kRanges.begin(), kRanges.end(), [&](const auto& range) {
    return point >= range.first && point <= range.second;
  });
}

// repr() of a str.
std::string Quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string shown(1, quote);
  for (size_t at = 0; at < text.size();) {
    const codec::Utf8Character character = codec::NextUtf8(std::string_view(text).substr(at));
    const char32_t value = character.value;
    std::array<char, 16> escape{};
    if (value == static_cast<unsigned char>(quote) || value == '\\') {
      shown += '\\';
      shown += static_cast<char>(value);
    } else if (value == '\n' || value == '\r' || value == '\t') {
      shown += value == '\n' ? "\\n" : value == '\r' ? "\\r" : "\\t";
    } else if (IsShownAsEscape(value)) {
      std::snprintf(escape.data(), escape.size(), value < 0x100 ? "\\x%02x" : "\\u%04x",
                    static_cast<unsigned>(value));
      shown += escape.data();
    } else {
      shown += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return shown + quote;
}

// midojo makes a class of each mapping but for those that hold mappings alone, which are tables of
// such.
bool IsRecord(const Json& value) {
  return value.object() != nullptr &&
         std::any_of(value.object()->begin(), value.object()->end(),
                     [](const Json::Member& member) { return member.second.object() == nullptr; });
}

std::string Repr(const Json& value);

// The members of a record as its class shows them.
std::string FieldsOf(const Json& record, const char* separator) {
  std::string shown;
  for (const auto& [name, member] : *record.object()) {
    shown += (shown.empty() ? "" : separator) + name + "=" + Repr(member);
  }
  return shown;
}

std::string Repr(const Json& value) {
  if (value.is_null()) return "None";
  if (const std::optional<bool> boolean = value.boolean()) return *boolean ? "True" : "False";
  if (const std::optional<int64_t> integer = value.integer()) return std::to_string(*integer);
  if (const std::optional<double> number = value.number()) return FloatText(*number);
  if (const std::string* text = value.string()) return Quoted(*text);
  std::string shown;
  if (const Json::Array* list = value.array()) {
    for (const Json& one : *list) shown += (shown.empty() ? "" : ", ") + Repr(one);
    return "[" + shown + "]";
  }
  if (IsRecord(value)) return "Record(" + FieldsOf(value, ", ") + ")";
  for (const auto& [name, member] : *value.object()) {
    shown += (shown.empty() ? "" : ", ") + Quoted(name) + ": " + Repr(member);
  }
  return "{" + shown + "}";
}

// A number, as True and False are too.
std::optional<double> NumberOf(const Json& value) {
  if (const std::optional<bool> boolean = value.boolean()) return *boolean ? 1 : 0;
  return value.number();
}

}  // namespace

std::string PythonText(const Json& value) {
  if (IsRecord(value)) return FieldsOf(value, " ");
  return value.string() != nullptr ? *value.string() : Repr(value);
}

bool PythonEqual(const Json& a, const Json& b) {
  const std::optional<int64_t> left_whole = a.integer();
  const std::optional<int64_t> right_whole = b.integer();
  if (left_whole && right_whole) return *left_whole == *right_whole;
  const std::optional<double> left = NumberOf(a);
  const std::optional<double> right = NumberOf(b);
  if (left && right) return *left == *right;
  if (left || right) return false;
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.string() != nullptr && b.string() != nullptr) return *a.string() == *b.string();
  if (a.array() != nullptr && b.array() != nullptr) {
    return std::equal(a.array()->begin(), a.array()->end(), b.array()->begin(), b.array()->end(),
                      PythonEqual);
  }
  if (a.object() == nullptr || b.object() == nullptr || a.object()->size() != b.object()->size()) {
    return false;
  }
  return std::all_of(a.object()->begin(), a.object()->end(), [&](const Json::Member& member) {
    const Json* other = b.Find(member.first);
    return other != nullptr && PythonEqual(member.second, *other);
  });
}

}  // namespace eval
