// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

// A moment after which waiting is over. Everything that blocks takes one; there is no default.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline After(std::chrono::milliseconds span) { return Deadline(Clock::now() + span); }
  static Deadline At(Clock::time_point at) { return Deadline(at); }
  static Deadline Never() { return Deadline(Clock::time_point::max()); }

  bool never() const { return at_ == Clock::time_point::max(); }
  bool passed() const { return !never() && Clock::now() >= at_; }
  // Returns the timeout for poll(2): -1 for never, otherwise the milliseconds left, rounded up, 0
  // if passed.
  int poll_ms() const {
    if (never()) return -1;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
  }
  Clock::time_point at() const { return at_; }
  friend bool operator<(const Deadline& a, const Deadline& b) { return a.at_ < b.at_; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};
