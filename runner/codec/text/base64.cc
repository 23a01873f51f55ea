// SPDX-License-Identifier: Apache-2.0
#include "codec/text/base64.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/ascii.h"

namespace codec {

std::string EncodeBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // The library ends it with a zero byte.
  int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                               reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.empty()) return std::string();
  const size_t letters = text.find_last_not_of('=') + 1;
  auto fits = [](char c) { return ascii::IsAlphanumeric(c) || c == '+' || c == '/'; };
  // The library refuses any other character between two letters, skips blanks and "-" around the
  // text, and takes padding anywhere.
  const bool strict = text.size() % 4 == 0 && text.size() <= (1u << 30) && letters > 0 &&
                      text.size() - letters <= 2 && text.find('=') >= letters &&
                      fits(text.front()) && fits(text[letters - 1]);
  if (!strict) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  int size = ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                               reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<size_t>(size) - (text.size() - letters));
  return out;
}

std::string EncodeBase64Url(std::string_view bytes) {
  std::string out = EncodeBase64(bytes);
  out.resize(std::min(out.find('='), out.size()));
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string padded(text);
  std::replace(padded.begin(), padded.end(), '-', '+');
  std::replace(padded.begin(), padded.end(), '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  return DecodeBase64(padded);
}

}  // namespace codec
