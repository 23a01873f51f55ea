// SPDX-License-Identifier: Apache-2.0
#include "codec/text/json_escape.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "codec/text/utf8.h"

namespace codec {
namespace {

constexpr size_t kUnitBytes = 6;  // "\u0041"
constexpr char32_t kHighSurrogates = 0xd800;
constexpr char32_t kLowSurrogates = 0xdc00;
constexpr char32_t kSurrogatesEnd = 0xe000;
constexpr char32_t kBeyondPlane = 0x10000;

// Reads "\uXXXX" at the beginning of `text`.
std::optional<char32_t> ReadUnit(std::string_view text) {
  if (text.size() < kUnitBytes || !text.starts_with("\\u")) return std::nullopt;
  char32_t unit = 0;
  for (char c : text.substr(2, 4)) {
    int digit = ascii::HexValue(c);
    if (digit < 0) return std::nullopt;
    unit = unit * 16 + static_cast<char32_t>(digit);
  }
  return unit;
}

// Appends what the escape at the beginning of `text` stands for, and returns its length; 0 if it is
// not one.
size_t Unescape(std::string_view text, std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  size_t letter = text.size() < 2 ? std::string_view::npos : kLetters.find(text[1]);
  if (letter != std::string_view::npos) {
    out += kMeanings[letter];
    return 2;
  }
  std::optional<char32_t> unit = ReadUnit(text);
  if (!unit) return 0;
  if (*unit < kHighSurrogates || *unit >= kSurrogatesEnd) {
    AppendUtf8(*unit, &out);
    return kUnitBytes;
  }
  std::optional<char32_t> low = ReadUnit(text.substr(kUnitBytes));
  bool pair = *unit < kLowSurrogates && low && *low >= kLowSurrogates && *low < kSurrogatesEnd;
  if (!pair) return 0;
  AppendUtf8(kBeyondPlane + ((*unit - kHighSurrogates) << 10) + (*low - kLowSurrogates), &out);
  return 2 * kUnitBytes;
}

}  // namespace

std::string JsonUnescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    size_t length = Unescape(text, out);
    if (length == 0) {
      out += '\\';
      length = 1;
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace codec
