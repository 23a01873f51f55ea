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
  // The same where attempts end without an answer; if not set, no other bound.
  std::optional<int> unanswered_max;
  std::chrono::milliseconds first_delay{500};  // Doubles, with up to a quarter of jitter on top.
  std::chrono::milliseconds delay_max{60'000};
  // The request may reach the service twice without harm. GET, HEAD, PUT and DELETE always may;
  // others are sent again only when the service said that it did not act (429, 503, rate limits),
  // or when no connection was made, unless this is set.
  bool repeatable = false;
  // Replaces the status of an answer that says by other means what a status is for, before anything
  // is decided. May be empty.
  std::function<int(const HttpResponse&)> status_of;
};

// The facts that DecideRetry needs beside the answer.
struct Attempt {
  int number = 1;       // Counts from 1.
  bool reached = true;  // HttpClient::reached().
  int64_t now_s = 0;    // Unix time, for dates in headers.
  double jitter = 0;    // In [0, 1).
};

// Returns how long to wait before the next attempt; nullopt if there should be no further attempt.
// Pure. A wait that the service asks for (`retry-after`, `x-ratelimit-reset`) is kept; when it is
// longer than `delay_max`, we stop.
std::optional<std::chrono::milliseconds> DecideRetry(const RetryPolicy& policy,
                                                     const HttpRequest& request,
                                                     const Result<HttpResponse>& answer,
                                                     const Attempt& attempt);

// Sends until an answer is final, the policy gives up, or `deadline` would pass while waiting.
// Gives the last answer, which may still be a 429 or a 5xx.
Result<HttpResponse> SendWithRetries(HttpClient& client, const HttpRequest& request,
                                     const RetryPolicy& policy, Deadline deadline);

// Does the same for a request that `send` makes: a GET, or one as harmless. `given_up` may be
// empty; it is asked several times in a second of waiting, and ends it.
Result<HttpResponse> GetWithRetries(const std::function<Result<HttpResponse>()>& send,
                                    const RetryPolicy& policy, Deadline deadline,
                                    const std::function<bool()>& given_up = {});

// Waits before attempt `number` (from 2) as the default policy does after a failure. Returns false,
// without a wait, if `deadline` would pass meanwhile.
bool PauseBefore(int number, Deadline deadline);

// Returns whether this answer is a rate limit: 429, or GitHub's 403 with `retry-after`, an
// exhausted x-ratelimit-remaining, or "secondary rate limit" in the message.
bool RateLimited(const HttpResponse& response);

}  // namespace net
