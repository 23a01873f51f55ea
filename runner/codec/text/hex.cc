// SPDX-License-Identifier: Apache-2.0
#include "codec/text/hex.h"

namespace codec {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string EncodeHex(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (char byte : bytes) {
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

std::optional<std::string> DecodeHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    size_t high = kDigits.find(hex[i]);
    size_t low = kDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

bool IsHex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsObjectId(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) && IsHex(text);
}

}  // namespace codec
