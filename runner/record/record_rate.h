// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace record {

// Bounds how often something that costs the sandbox nothing may be recorded: OpenShell's rate of 5
// a second, 10 at once.
class RecordRate {
 public:
  // Returns whether to record it.
  bool Take() {
    Clock::time_point now = Clock::now();
    std::chrono::duration<double> passed = now - last_;
    last_ = now;
    left_ = std::min(kBurst, left_ + passed.count() * kPerSecond);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPerSecond = 5;
  static constexpr double kBurst = 10;
  Clock::time_point last_ = Clock::now();
  double left_ = kBurst;
};

}  // namespace record
