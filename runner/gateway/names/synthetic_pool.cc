// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/synthetic_pool.h"

#include <algorithm>
#include <array>

#include "gateway/names/limits.h"

namespace gateway {
namespace {

// 198.18.0.0/15 as the last four bytes of an address.
constexpr uint32_t kBase = 0xc6120000;
constexpr uint32_t kSize = uint32_t{1} << 17;
static_assert(kSyntheticNamesMax < kSize);
constexpr std::array<uint8_t, 6> kPrefix6 = {0xfd, 0x23, 0x6f, 0x70, 0x65, 0x6e};

uint32_t Last4(const policy::Address& address) {
  uint32_t value = 0;
  for (size_t i = 12; i < 16; ++i) value = value << 8 | address.bytes[i];
  return value;
}

policy::Address AddressAt(uint32_t offset) {
  policy::Address address;
  address.bytes[10] = address.bytes[11] = 0xff;
  uint32_t value = kBase + offset;
  for (size_t i = 0; i < 4; ++i) address.bytes[15 - i] = static_cast<uint8_t>(value >> (8 * i));
  return address;
}

}  // namespace

policy::Address SyntheticPool::Assign(const std::string& host) {
  auto known = by_host_.find(host);
  if (known != by_host_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return AddressAt(known->second->offset);
  }
  if (order_.size() >= kSyntheticNamesMax) {
    by_host_.erase(order_.back().host);
    by_offset_.erase(order_.back().offset);
    order_.pop_back();
  }
  // Neither the first nor the last: some programs take those for a network and its broadcast.
  while (by_offset_.contains(next_)) next_ = next_ + 2 < kSize ? next_ + 1 : 1;
  order_.push_front({host, next_});
  by_host_.emplace(host, order_.begin());
  by_offset_.emplace(next_, order_.begin());
  next_ = next_ + 2 < kSize ? next_ + 1 : 1;
  return AddressAt(order_.front().offset);
}

std::optional<std::string> SyntheticPool::Find(const policy::Address& address) {
  if (!address.is_v4() || !Contains(address)) return std::nullopt;
  auto found = by_offset_.find(Last4(address) - kBase);
  if (found == by_offset_.end()) return std::nullopt;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->host;
}

bool SyntheticPool::Contains(const policy::Address& address) {
  if (address.is_v4()) return Last4(address) >= kBase && Last4(address) - kBase < kSize;
  return std::equal(kPrefix6.begin(), kPrefix6.end(), address.bytes.begin());
}

}  // namespace gateway
