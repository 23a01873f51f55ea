// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/der.h"

#include <cstdint>

#include "codec/data/byte_reader.h"

namespace sigstore {
namespace {

constexpr int kTagOfSeveralBytes = 0x1f;
constexpr uint64_t kLongForm = 0x80;
constexpr size_t kLengthBytesMax = 3;

}  // namespace

std::optional<Element> TakeElement(std::string_view* bytes) {
  codec::ByteReader reader(*bytes);
  Element element;
  element.tag = static_cast<int>(reader.TakeNumber(1));
  uint64_t length = reader.TakeNumber(1);
  if (length >= kLongForm) {
    size_t width = length - kLongForm;
    if (width == 0 || width > kLengthBytesMax) return std::nullopt;
    length = reader.TakeNumber(width);
    if (length < kLongForm || length >> (8 * (width - 1)) == 0) return std::nullopt;
  }
  element.content = reader.Take(length);
  if (reader.failed() || (element.tag & kTagOfSeveralBytes) == kTagOfSeveralBytes) {
    return std::nullopt;
  }
  element.whole = bytes->substr(0, bytes->size() - reader.left().size());
  *bytes = reader.left();
  return element;
}

std::string Wrap(int tag, std::string_view content) {
  std::string length;
  for (size_t rest = content.size(); rest > 0; rest >>= 8) {
    length.insert(length.begin(), static_cast<char>(rest & 0xff));
  }
  std::string out(1, static_cast<char>(tag));
  if (content.size() >= kLongForm) {
    out += static_cast<char>(kLongForm + length.size());
  } else if (content.empty()) {
    out += '\0';
  }
  out += length;
  out += content;
  return out;
}

}  // namespace sigstore
