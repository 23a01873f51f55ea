// SPDX-License-Identifier: Apache-2.0
// When a request is worth sending again, and after how long.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "net/http_client.h"

namespace net {

struct RetryPolicy {
  int attempts_max = 5;
  std::chrono::milliseconds first_delay{500};  // Doubles, with up to a quarter of jitter on top.
  std::chrono::milliseconds delay_max{60'000};
  // The request may reach the service twice without harm. GET, HEAD, PUT and DELETE always may;
  // others are sent again only when the service said that it did not act (429, 503, rate limits),
  // or when no connection was made, unless this is set.
  bool repeatable = false;
};

// How long to wait before attempt `attempt + 1` (attempts count from 1), or nothing: no further
// attempt. Pure: `now_s` is the wall clock's Unix time (for x-ratelimit-reset), `jitter` is in [0,
// 1).
std::optional<std::chrono::milliseconds> DecideRetry(const RetryPolicy& policy,
                                                     const HttpRequest& request,
                                                     const Result<HttpResponse>& answer,
                                                     int attempt, int64_t now_s, double jitter);

// Sends until an answer is final, the policy gives up, or `deadline` would pass while waiting.
// Gives the last answer, which may still be a 429 or a 5xx.
Result<HttpResponse> SendWithRetries(HttpClient& client, const HttpRequest& request,
                                     const RetryPolicy& policy, Deadline deadline);

// Whether this answer is a rate limit: 429, or GitHub's 403 with `retry-after`, an exhausted
// x-ratelimit-remaining, or "secondary rate limit" in the message.
bool RateLimited(const HttpResponse& response);

}  // namespace net
