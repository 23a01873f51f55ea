// SPDX-License-Identifier: Apache-2.0
// Reads binary messages: numbers in network order and byte strings, from the front. Check `failed`
// once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace codec {

// Takes numbers in network order and byte strings from the front of a message. Once something did
// not fit, `failed` stays true and everything read is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  bool failed() const { return failed_; }
  bool empty() const { return left_.empty(); }
  std::string_view left() const { return left_; }

  std::string_view Take(size_t count) {
    if (count > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  // Takes a number of `width` bytes, 1 to 8.
  uint64_t TakeNumber(size_t width) {
    uint64_t number = 0;
    for (char byte : Take(width)) number = (number << 8) | static_cast<uint8_t>(byte);
    return number;
  }

  // Bytes behind their own length, which takes `width` bytes.
  std::string_view TakePrefixed(size_t width) {
    return Take(static_cast<size_t>(TakeNumber(width)));
  }

 private:
  std::string_view left_;
  bool failed_ = false;
};

}  // namespace codec
