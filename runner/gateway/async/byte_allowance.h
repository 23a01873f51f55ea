// SPDX-License-Identifier: Apache-2.0
// A limit of bytes that several connections share: `--host-bytes`. Streams ask it before each read
// and write.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace gateway {

// The number of bytes that may still pass over the connections that share it: both directions
// together, with the overhead of TLS and HTTP. Not one byte more is read from a socket or written
// to it.
class ByteAllowance {
 public:
  // `refused` is called once: when something was to pass and nothing more may. `why` is the error
  // of what did not pass.
  ByteAllowance(int64_t bytes, std::string why, std::function<void()> refused)
      : left_(bytes), why_(std::move(why)), refused_(std::move(refused)) {}

  // Returns how many of `size` bytes may pass; 0 if the allowance is used up.
  size_t Allow(size_t size) {
    size_t allowed = static_cast<size_t>(std::clamp<int64_t>(left_, 0, static_cast<int64_t>(size)));
    if (allowed == 0 && size > 0 && !std::exchange(exceeded_, true)) refused_();
    return allowed;
  }
  void Spend(size_t bytes) { left_ -= static_cast<int64_t>(bytes); }
  // True if something did not pass.
  bool exceeded() const { return exceeded_; }
  const std::string& why() const { return why_; }

 private:
  int64_t left_;
  std::string why_;
  std::function<void()> refused_;
  bool exceeded_ = false;
};

}  // namespace gateway
