// SPDX-License-Identifier: Apache-2.0
#include "net/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <string>
#include <thread>

namespace net {
namespace {

using std::chrono::milliseconds;

// GitHub asks clients that hit a secondary limit without a `retry-after` to wait at least a minute.
constexpr milliseconds kSecondaryLimitDelay{60'000};
constexpr milliseconds kGivenUpPoll{100};

std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

milliseconds Seconds(int64_t seconds) {
  return milliseconds(std::clamp<int64_t>(seconds, 0, 1'000'000) * 1000);
}

bool SecondaryLimit(const HttpResponse& response) {
  return response.body.find("secondary rate limit") != std::string::npos;
}

// Returns the delay that the service itself asks for, if it does.
std::optional<milliseconds> AskedDelay(const HttpResponse& response, int64_t now_s) {
  std::string after = response.Header("retry-after");
  if (!after.empty()) {
    if (std::optional<int64_t> seconds = ParseInteger(after)) return Seconds(*seconds);
    time_t date = curl_getdate(after.c_str(), nullptr);  // The other form of RFC 9110, 10.2.3.
    if (date >= 0) return Seconds(static_cast<int64_t>(date) - now_s);
  }
  if (!RateLimited(response)) return std::nullopt;
  if (response.Header("x-ratelimit-remaining") == "0") {
    std::optional<int64_t> reset = ParseInteger(response.Header("x-ratelimit-reset"));
    if (reset) return Seconds(*reset - now_s + 1);  // Its clock and ours may differ by a little.
  }
  const bool unsaid = response.status == 403 || SecondaryLimit(response);
  return unsaid ? std::optional(kSecondaryLimitDelay) : std::nullopt;
}

bool RepeatsSafely(const RetryPolicy& policy, const HttpRequest& request) {
  return policy.repeatable || request.method == "GET" || request.method == "HEAD" ||
         request.method == "PUT" || request.method == "DELETE";
}

bool WorthRepeating(const RetryPolicy& policy, const HttpRequest& request,
                    const Result<HttpResponse>& answer, bool reached) {
  bool repeats_safely = RepeatsSafely(policy, request);
  if (!answer.ok()) {
    return answer.error().code == Code::kTemporary && (repeats_safely || !reached);
  }
  const HttpResponse& response = answer.value();
  if (RateLimited(response) || response.status == 503) return true;
  return repeats_safely && (response.status >= 500 || response.status == 408);
}

Result<HttpResponse> Repeat(const std::function<Result<HttpResponse>()>& send,
                            const std::function<bool()>& reached, const HttpRequest& request,
                            const RetryPolicy& policy, Deadline deadline,
                            const std::function<bool()>& given_up) {
  std::random_device random;
  std::uniform_real_distribution<double> jitter(0, 1);
  for (int number = 1;; ++number) {
    Result<HttpResponse> answer = send();
    Attempt attempt{number, reached(), static_cast<int64_t>(::time(nullptr)), jitter(random)};
    std::optional<milliseconds> delay = DecideRetry(policy, request, answer, attempt);
    if (!delay || deadline < Deadline::After(*delay)) return answer;
    for (Deadline next = Deadline::After(*delay); !next.passed();) {
      if (given_up && given_up()) return answer;
      std::this_thread::sleep_for(std::min(kGivenUpPoll, milliseconds(next.poll_ms())));
    }
  }
}

}  // namespace

bool RateLimited(const HttpResponse& response) {
  if (response.status == 429) return true;
  if (response.status != 403) return false;
  return !response.Header("retry-after").empty() ||
         response.Header("x-ratelimit-remaining") == "0" || SecondaryLimit(response);
}

std::optional<milliseconds> DecideRetry(const RetryPolicy& policy, const HttpRequest& request,
                                        const Result<HttpResponse>& answer,
                                        const Attempt& attempt) {
  const bool unanswered = !answer.ok() && policy.unanswered_max;
  if (attempt.number >= (unanswered ? *policy.unanswered_max : policy.attempts_max)) {
    return std::nullopt;
  }
  if (!WorthRepeating(policy, request, answer, attempt.reached)) return std::nullopt;
  if (answer.ok()) {
    std::optional<milliseconds> asked = AskedDelay(answer.value(), attempt.now_s);
    if (asked) {
      if (*asked > policy.delay_max) return std::nullopt;
      return asked;
    }
  }
  milliseconds delay = policy.first_delay;
  for (int doubled = 1; doubled < attempt.number && delay < policy.delay_max; ++doubled) delay *= 2;
  delay = std::min(delay, policy.delay_max);
  auto jitter = static_cast<int64_t>(attempt.jitter * static_cast<double>(delay.count()) / 4);
  return delay + milliseconds(jitter);
}

Result<HttpResponse> SendWithRetries(HttpClient& client, const HttpRequest& request,
                                     const RetryPolicy& policy, Deadline deadline) {
  const auto send = [&] {
    Result<HttpResponse> answer = client.Send(request, deadline);
    if (answer.ok() && policy.status_of) answer.value().status = policy.status_of(answer.value());
    return answer;
  };
  return Repeat(send, [&client] { return client.reached(); }, request, policy, deadline, {});
}

bool PauseBefore(int number, Deadline deadline) {
  const milliseconds delay = RetryPolicy().first_delay * (1 << std::clamp(number - 2, 0, 6));
  if (deadline < Deadline::After(delay)) return false;
  std::this_thread::sleep_for(delay);
  return true;
}

Result<HttpResponse> GetWithRetries(const std::function<Result<HttpResponse>()>& send,
                                    const RetryPolicy& policy, Deadline deadline,
                                    const std::function<bool()>& given_up) {
  return Repeat(
      send, [] { return true; }, HttpRequest{}, policy, deadline, given_up);
}

}  // namespace net
