// SPDX-License-Identifier: Apache-2.0
// The inside of compiled policies: numbers found by a hash. A hash may lead to numbers that were
// not meant (two texts with one hash): whoever asks compares the texts anyway.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace policy {

// FNV-1a over bytes, one by one, so that every beginning of a text has its hash on the way.
class Hash {
 public:
  void Add(char c) { value_ = (value_ ^ static_cast<uint8_t>(c)) * 0x100000001b3; }
  void Add(std::string_view text) {
    for (char c : text) Add(c);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

class HashIndex {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint32_t number = 0;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void Add(uint64_t hash, uint32_t number) { entries_.push_back({hash, number}); }

  bool empty() const { return entries_.empty(); }

  // Call once, after the last Add.
  void Freeze() {
    size_t buckets = 1;
    while (buckets < entries_.size()) buckets *= 2;
    mask_ = buckets - 1;
    auto bucket = [this](const Entry& entry) { return Mix(entry.hash) & mask_; };
    std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
      return bucket(a) != bucket(b) ? bucket(a) < bucket(b) : a < b;
    });
    begins_.assign(buckets + 1, 0);
    for (const Entry& entry : entries_) ++begins_[bucket(entry) + 1];
    for (size_t i = 0; i < buckets; ++i) begins_[i + 1] += begins_[i];
  }

  // The entries of this hash, by number.
  std::span<const Entry> Find(uint64_t hash) const {
    if (entries_.empty()) return {};
    size_t bucket = Mix(hash) & mask_;
    const Entry* begin = entries_.data() + begins_[bucket];
    const Entry* end = entries_.data() + begins_[bucket + 1];
    while (begin != end && begin->hash != hash) ++begin;
    const Entry* last = begin;
    while (last != end && last->hash == hash) ++last;
    return {begin, last};
  }

 private:
  // Short numbers spread as well as hashes do.
  static uint64_t Mix(uint64_t hash) { return (hash * 0x9E3779B97F4A7C15) >> 32; }

  std::vector<Entry> entries_;  // By bucket, hash and number.
  std::vector<uint32_t> begins_;
  uint64_t mask_ = 0;
};

}  // namespace policy
