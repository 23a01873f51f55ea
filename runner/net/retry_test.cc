// SPDX-License-Identifier: Apache-2.0
#include "net/retry.h"

#include <catch2/catch.hpp>

namespace net {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kNow = 1'700'000'000;

Result<HttpResponse> Answer(int status, std::multimap<std::string, std::string> headers = {},
                            std::string body = "") {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  response.body = std::move(body);
  return response;
}

Result<HttpResponse> NoAnswer(Code code = Code::kTemporary) {
  return Error{code, "connection refused"};
}

std::optional<milliseconds> Decide(const std::string& method, const Result<HttpResponse>& answer,
                                   Attempt attempt = {1, true, kNow, 0}, RetryPolicy policy = {}) {
  HttpRequest request;
  request.method = method;
  return DecideRetry(policy, request, answer, attempt);
}

TEST_CASE("DecideRetry takes every final answer as final") {
  for (int status : {200, 201, 204, 301, 400, 401, 403, 404, 410, 422}) {
    CAPTURE(status);
    CHECK_FALSE(Decide("GET", Answer(status)));
  }
}

TEST_CASE("DecideRetry repeats a GET after 5xx and 408, and a POST only where nothing was done") {
  for (int status : {408, 500, 502, 504}) {
    CAPTURE(status);
    CHECK(Decide("GET", Answer(status)));
    CHECK_FALSE(Decide("POST", Answer(status)));
  }
  CHECK(Decide("POST", Answer(503)));
  CHECK(Decide("POST", Answer(429)));
  RetryPolicy repeatable;
  repeatable.repeatable = true;
  CHECK(Decide("PATCH", Answer(502), {1, true, kNow, 0}, repeatable));
}

TEST_CASE("DecideRetry repeats a POST whose request never left, not one that may have arrived") {
  CHECK(Decide("POST", NoAnswer(), {1, false, kNow, 0}));
  CHECK_FALSE(Decide("POST", NoAnswer(), {1, true, kNow, 0}));
  CHECK(Decide("DELETE", NoAnswer(), {1, true, kNow, 0}));
}

TEST_CASE("DecideRetry does not repeat what can not get better") {
  CHECK_FALSE(Decide("GET", NoAnswer(Code::kSetup)));
  CHECK_FALSE(Decide("GET", NoAnswer(Code::kInvalid)));
}

TEST_CASE("DecideRetry doubles the delay up to its bound, plus jitter") {
  RetryPolicy policy;
  policy.attempts_max = 100;
  CHECK(Decide("GET", Answer(500), {1, true, kNow, 0}, policy) == milliseconds(500));
  CHECK(Decide("GET", Answer(500), {2, true, kNow, 0}, policy) == milliseconds(1000));
  CHECK(Decide("GET", Answer(500), {4, true, kNow, 0}, policy) == milliseconds(4000));
  CHECK(Decide("GET", Answer(500), {1, true, kNow, 0.5}, policy) == milliseconds(562));
  CHECK(Decide("GET", Answer(500), {90, true, kNow, 0}, policy) == policy.delay_max);
}

TEST_CASE("DecideRetry gives up sooner where attempts end without an answer, if it is told so") {
  RetryPolicy policy;
  policy.attempts_max = 9;
  const Result<HttpResponse> none = Error{Code::kTemporary, "refused"};
  CHECK(DecideRetry(policy, {}, none, {.number = 8}));
  policy.unanswered_max = 3;
  CHECK(DecideRetry(policy, {}, none, {.number = 2}));
  CHECK_FALSE(DecideRetry(policy, {}, none, {.number = 3}));
  CHECK(DecideRetry(policy, {}, Answer(502), {.number = 3}));
}

TEST_CASE("DecideRetry gives up after the last attempt") {
  RetryPolicy policy;
  policy.attempts_max = 3;
  CHECK(Decide("GET", Answer(500), {2, true, kNow, 0}, policy));
  CHECK_FALSE(Decide("GET", Answer(500), {3, true, kNow, 0}, policy));
}

TEST_CASE("DecideRetry waits as long as the service asks, in seconds or until a date") {
  CHECK(Decide("GET", Answer(429, {{"retry-after", "7"}})) == milliseconds(7000));
  CHECK(Decide("GET", Answer(503, {{"retry-after", "0"}})) == milliseconds(0));
  // 1 700 000 000 is Tue, 14 Nov 2023 22:13:20 GMT.
  CHECK(Decide("GET", Answer(429, {{"retry-after", "Tue, 14 Nov 2023 22:13:50 GMT"}})) ==
        milliseconds(30'000));
  CHECK(Decide("GET", Answer(429, {{"retry-after", "Tue, 14 Nov 2023 22:00:00 GMT"}})) ==
        milliseconds(0));
}

TEST_CASE("DecideRetry stops when the service asks for more time than we give") {
  CHECK_FALSE(Decide("GET", Answer(429, {{"retry-after", "61"}})));
  CHECK_FALSE(Decide("GET", Answer(429, {{"retry-after", "99999999999999"}})));
}

TEST_CASE("DecideRetry ignores a retry-after that is no time, and backs off") {
  CHECK(Decide("GET", Answer(429, {{"retry-after", "-1"}})) == milliseconds(500));
  CHECK(Decide("GET", Answer(429, {{"retry-after", "soon"}})) == milliseconds(500));
}

TEST_CASE("DecideRetry waits until an exhausted limit resets") {
  CHECK(Decide("GET", Answer(403, {{"x-ratelimit-remaining", "0"},
                                   {"x-ratelimit-reset", std::to_string(kNow + 20)}})) ==
        milliseconds(21'000));
  CHECK_FALSE(Decide("GET", Answer(403, {{"x-ratelimit-remaining", "0"},
                                         {"x-ratelimit-reset", std::to_string(kNow + 3000)}})));
}

TEST_CASE("RateLimited tells a limit from a missing permission") {
  CHECK(RateLimited(Answer(429).value()));
  CHECK(RateLimited(Answer(403, {{"retry-after", "1"}}).value()));
  CHECK(RateLimited(Answer(403, {{"x-ratelimit-remaining", "0"}}).value()));
  CHECK(RateLimited(
      Answer(403, {}, R"({"message":"You have exceeded a secondary rate limit."})").value()));
  CHECK_FALSE(RateLimited(
      Answer(403, {{"x-ratelimit-remaining", "4999"}}, "not accessible by integration").value()));
  CHECK_FALSE(RateLimited(Answer(404, {{"x-ratelimit-remaining", "0"}}).value()));
}

TEST_CASE("a secondary limit without a time is waited out for a minute") {
  CHECK(Decide("POST", Answer(403, {}, "secondary rate limit")) == milliseconds(60'000));
  CHECK(Decide("POST", Answer(429, {}, "secondary rate limit")) == milliseconds(60'000));
  CHECK(Decide("POST", Answer(429)) < milliseconds(1'000));
}

}  // namespace
}  // namespace net
