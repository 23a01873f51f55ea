// SPDX-License-Identifier: Apache-2.0
#include "codec/data/json_line.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "codec/text/utf8.h"

namespace codec {
namespace {

// How a character of ASCII is escaped: 0 if it stands for itself, 'u' for "\u00XX", and otherwise
// the letter behind the backslash.
constexpr std::array<char, 128> kEscapes = [] {
  std::array<char, 128> escapes{};
  for (size_t c = 0; c < ' '; ++c) escapes[c] = 'u';
  constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  for (size_t i = 0; i < kShort.size(); ++i) escapes[static_cast<size_t>(kShort[i])] = kLetters[i];
  return escapes;
}();

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < kEscapes.size() && kEscapes[byte] == 0;
}

// True if none of eight bytes needs a look: below 0x20, above 0x7f, a quote or a backslash. May be
// false without need.
bool ArePlain(const char* bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t word;
  ::memcpy(&word, bytes, sizeof word);
  uint64_t quote = word ^ (kOnes * '"');
  uint64_t backslash = word ^ (kOnes * '\\');
  uint64_t hits = (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) | word;
  return (hits & (kOnes << 7)) == 0;
}

// Counts the bytes from `at` on that stand for themselves.
size_t CountPlain(std::string_view text, size_t at) {
  size_t end = at;
  while (end + 8 <= text.size() && ArePlain(text.data() + end)) end += 8;
  while (end < text.size() && IsPlain(text[end])) ++end;
  return end - at;
}

// Appends some characters of ASCII from `at` on one by one, where escapes are likely to be near one
// another. Returns where it stopped: behind them, or at another character.
size_t AppendDense(std::string_view value, size_t at, std::string* out) {
  constexpr size_t kAtOnce = 16;
  constexpr size_t kEscapedBytes = 6;
  constexpr char kDigits[] = "0123456789abcdef";
  char text[kAtOnce * kEscapedBytes];
  size_t size = 0;
  const size_t end = std::min(at + kAtOnce, value.size());
  for (; at < end; ++at) {
    const auto byte = static_cast<unsigned char>(value[at]);
    if (byte >= kEscapes.size()) break;
    const char escape = kEscapes[byte];
    if (escape == 0) {
      text[size++] = value[at];
      continue;
    }
    text[size++] = '\\';
    text[size++] = escape;
    if (escape != 'u') continue;
    for (char digit : {'0', '0', kDigits[byte >> 4], kDigits[byte & 0xf]}) text[size++] = digit;
  }
  out->append(text, size);
  return at;
}

}  // namespace

void JsonLine::Separate() {
  char last = out_.back();
  if (last != '{' && last != '[') out_ += ',';
}

void JsonLine::Key(std::string_view key) {
  Separate();
  ((out_ += '"') += key) += "\":";
}

void AppendJsonText(std::string_view value, std::string* out) {
  *out += '"';
  for (size_t at = 0; at < value.size();) {
    const size_t plain = CountPlain(value, at);
    out->append(value.substr(at, plain));
    at = AppendDense(value, at + plain, out);
    if (at == value.size() || static_cast<unsigned char>(value[at]) < kEscapes.size()) continue;
    const Utf8Character character = NextUtf8(value.substr(at));
    *out += character.valid ? value.substr(at, character.bytes) : std::string_view("\ufffd");
    at += character.bytes;
  }
  *out += '"';
}

JsonLine& JsonLine::Text(std::string_view key, std::string_view value) {
  Key(key);
  AppendJsonText(value, &out_);
  return *this;
}

JsonLine& JsonLine::Number(std::string_view key, int64_t value) {
  Key(key);
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *this;
}

JsonLine& JsonLine::Object(std::string_view key) {
  Key(key);
  out_ += '{';
  return *this;
}

JsonLine& JsonLine::Array(std::string_view key) {
  Key(key);
  out_ += '[';
  return *this;
}

JsonLine& JsonLine::Element(std::string_view value) {
  Separate();
  AppendJsonText(value, &out_);
  return *this;
}

JsonLine& JsonLine::CloseArray() {
  out_ += ']';
  return *this;
}

JsonLine& JsonLine::Close() {
  out_ += '}';
  return *this;
}

JsonLine& JsonLine::Members(std::string_view rendered) {
  Separate();
  out_ += rendered;
  return *this;
}

}  // namespace codec
