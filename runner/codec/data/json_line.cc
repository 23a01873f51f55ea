// SPDX-License-Identifier: Apache-2.0
#include "codec/data/json_line.h"

#include <string.h>

#include <charconv>

#include "codec/text/utf8.h"

namespace codec {
namespace {

bool IsPlain(char c) {
  unsigned char byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
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

}  // namespace

void JsonLine::Separate() {
  char last = out_.back();
  if (last != '{' && last != '[') out_ += ',';
}

void JsonLine::Key(std::string_view key) {
  Separate();
  ((out_ += '"') += key) += "\":";
}

void JsonLine::Escaped(std::string_view value) {
  out_ += '"';
  for (size_t at = 0; at < value.size();) {
    size_t plain = CountPlain(value, at);
    out_.append(value.substr(at, plain));
    at += plain;
    if (at == value.size()) break;
    char c = value[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      Utf8Character character = NextUtf8(value.substr(at));
      out_ += character.valid ? value.substr(at, character.bytes) : std::string_view("\ufffd");
      at += character.bytes;
      continue;
    }
    ++at;
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    size_t known = kShort.find(c);
    if (known != std::string_view::npos) {
      out_.append(1, '\\').append(1, kLetters[known]);
    } else {
      constexpr char kDigits[] = "0123456789abcdef";
      out_.append("\\u00").append(1, kDigits[(c >> 4) & 1]).append(1, kDigits[c & 0xf]);
    }
  }
  out_ += '"';
}

JsonLine& JsonLine::Text(std::string_view key, std::string_view value) {
  Key(key);
  Escaped(value);
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
  Escaped(value);
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
