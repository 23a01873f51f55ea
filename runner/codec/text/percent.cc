// SPDX-License-Identifier: Apache-2.0
#include "codec/text/percent.h"

#include <algorithm>

#include "base/ascii.h"

namespace codec {
namespace {

bool IsUnreserved(char c) {
  return ascii::IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

std::string Decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '%' && i + 2 < text.size() && ascii::HexValue(text[i + 1]) >= 0 &&
                  ascii::HexValue(text[i + 2]) >= 0;
    if (escape) {
      out += static_cast<char>(ascii::HexValue(text[i + 1]) * 16 + ascii::HexValue(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::string PercentEncode(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size());
  for (char c : bytes) {
    if (IsUnreserved(c)) {
      out += c;
      continue;
    }
    unsigned char byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string PercentEncodePath(std::string_view path) {
  std::string out;
  while (true) {
    const size_t slash = std::min(path.find('/'), path.size());
    out += PercentEncode(path.substr(0, slash));
    if (slash == path.size()) return out;
    out += '/';
    path.remove_prefix(slash + 1);
  }
}

std::string PercentDecode(std::string_view text) { return Decode(text, false); }
std::string FormDecode(std::string_view text) { return Decode(text, true); }

}  // namespace codec
