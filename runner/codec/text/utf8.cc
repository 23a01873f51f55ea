// SPDX-License-Identifier: Apache-2.0
#include "codec/text/utf8.h"

#include "base/result.h"

namespace codec {

Utf8Character NextUtf8(std::string_view text) {
  ENSURE(!text.empty());
  const unsigned char lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xc2 || lead > 0xf4) return {};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t value = lead & (0xff >> (length + 1));
  for (size_t at = 1; at < length; ++at) {
    if (at >= text.size()) return {0xfffd, at, false};
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    unsigned low = 0x80;
    unsigned high = 0xbf;
    if (at == 1) {  // RFC 3629, section 4: the second byte rules out overlong forms and surrogates.
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    }
    if (byte < low || byte > high) return {0xfffd, at, false};
    value = (value << 6) | (byte & 0x3f);
  }
  return {value, length, true};
}

void AppendUtf8(char32_t value, std::string* out) {
  const auto put = [&](char32_t byte) { *out += static_cast<char>(byte); };
  if (value < 0x80) return put(value);
  const int more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  constexpr char32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  put(kLead[more] | (value >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) put(0x80 | ((value >> (6 * i)) & 0x3f));
}

namespace {

// Counts the ASCII characters from `at` on: most of any text, and so a block at a time.
size_t CountAscii(std::string_view text, size_t at) {
  constexpr size_t kBlock = 32;
  size_t end = at;
  for (; end + kBlock <= text.size(); end += kBlock) {
    unsigned char all = 0;
    for (size_t i = 0; i < kBlock; ++i) all |= static_cast<unsigned char>(text[end + i]);
    if (all >= 0x80) break;
  }
  while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
  return end - at;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    at += CountAscii(text, at);
    if (at == text.size()) break;
    const Utf8Character character = NextUtf8(text.substr(at));
    if (!character.valid) return at;
    at += character.bytes;
  }
  return std::string_view::npos;
}

}  // namespace codec
