// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

#include "net/retry.h"

namespace telemetry {

// An answer is read up to the bound of OTLP's specification.
inline constexpr size_t kAnswerBytesMax = size_t{4} << 20;

// Returns how often a collector is asked: once more where it says that it is busy, since a run has
// little time left for it; not where none is there.
inline net::RetryPolicy CollectorRetries() {
  net::RetryPolicy policy;
  policy.attempts_max = 2;
  policy.unanswered_max = 1;
  policy.first_delay = std::chrono::milliseconds(200);
  return policy;
}

}  // namespace telemetry
