// SPDX-License-Identifier: Apache-2.0
#include "eval/suite/address_range.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace eval {
namespace {

constexpr int kByteBits = 8;

// The bits of byte `index` that belong to a prefix.
uint8_t MaskOf(int prefix, int index) {
  const int bits = prefix - index * kByteBits;
  if (bits >= kByteBits) return 0xff;
  return bits <= 0 ? 0 : static_cast<uint8_t>(0xff << (kByteBits - bits));
}

// The family of an address, whose bytes are written to `bytes`; 0 if it is not one.
int ReadAddress(const std::string& text, uint8_t (&bytes)[16]) {
  for (int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), bytes) == 1) return family;
  }
  return 0;
}

}  // namespace

std::optional<AddressRange> AddressRange::Parse(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  AddressRange range;
  range.family_ = ReadAddress(text.substr(0, slash), range.bytes_);
  const int most = range.family_ == AF_INET ? 32 : 128;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + slash + 1, end, range.prefix_);
  bool right = range.family_ != 0 && error == std::errc() && stop == end && range.prefix_ >= 0 &&
               range.prefix_ <= most;
  for (int i = 0; right && i < most / kByteBits; ++i) {
    right = (range.bytes_[i] & ~MaskOf(range.prefix_, i)) == 0;
  }
  return right ? std::optional(range) : std::nullopt;
}

bool AddressRange::Contains(const std::string& host) const {
  uint8_t bytes[16] = {};
  if (ReadAddress(host, bytes) != family_) return false;
  for (int i = 0; i < static_cast<int>(sizeof bytes); ++i) {
    if ((bytes[i] & MaskOf(prefix_, i)) != bytes_[i]) return false;
  }
  return true;
}

}  // namespace eval
