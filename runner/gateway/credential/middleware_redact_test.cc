// SPDX-License-Identifier: Apache-2.0
#include "gateway/credential/middleware_redact.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

const std::string kRest = "0123456789abcdef";  // The 16 that make a key.

// `text` in pieces of `size` bytes.
std::string Erase(std::string_view text, size_t size) {
  KeyEraser eraser;
  std::string out;
  for (size_t at = 0; at < text.size(); at += size) {
    eraser.Feed(text.substr(at, size), at + size >= text.size(), out);
  }
  return out;
}

TEST_CASE("Keys are written over, however the text is cut into pieces") {
  const std::string key = "sk-" + kRest;
  struct Case {
    std::string text;
    std::string shown;
  };
  for (const Case& c : std::vector<Case>{
           {key, "[REDACTED]"},
           {"a " + key + "_-XYZ more", "a [REDACTED] more"},
           {"\"" + key + "\",\"" + key + "\"", "\"[REDACTED]\",\"[REDACTED]\""},
           {"ta" + key + ".", "ta[REDACTED]."},
           {"sk-sk-" + kRest, "[REDACTED]"},
           {"ssk-" + kRest, "s[REDACTED]"},
           {"sksk-" + kRest + "!", "sk[REDACTED]!"},
           {"sk-" + kRest.substr(1), "sk-" + kRest.substr(1)},
           {"sk-" + kRest.substr(1) + "." + key, "sk-" + kRest.substr(1) + ".[REDACTED]"},
           {"sk-" + std::string(70000, 'x') + " end s", "[REDACTED] end s"},
           {"SK-" + kRest + " sk_" + kRest, "SK-" + kRest + " sk_" + kRest},
           {"", ""},
           {"s sk sk- task risk-", "s sk sk- task risk-"},
       }) {
    for (size_t size : {1, 2, 3, 5, 17, 18, 19, 20, 1000000}) {
      INFO(c.text.substr(0, 60) << " in pieces of " << size);
      CHECK(Erase(c.text, size) == c.shown);
    }
  }
}

std::vector<policy::Middleware> NewMiddlewares(bool fail_open) {
  policy::Middleware middleware;
  middleware.name = "redact";
  middleware.fail_open = fail_open;
  middleware.include = {"*.example.com"};
  middleware.exclude = {"plain.example.com"};
  return {middleware};
}

std::optional<OutgoingRefusal> Run(bool fail_open, const std::vector<std::string>& pieces,
                                   std::string& out) {
  Redaction planned = PlanRedaction(NewMiddlewares(fail_open), "api.example.com", {});
  REQUIRE(planned.filter != nullptr);
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::optional<OutgoingRefusal> refusal =
        planned.filter->Filter(pieces[i], i + 1 == pieces.size(), out);
    if (refusal.has_value()) return refusal;
  }
  return std::nullopt;
}

TEST_CASE("Only the hosts of a middleware are redacted") {
  CHECK(PlanRedaction(NewMiddlewares(false), "api.example.com", {}).filter != nullptr);
  CHECK_FALSE(PlanRedaction(NewMiddlewares(false), "api.example.com", {}).filter->keeps_length());
  for (std::string_view host : {"plain.example.com", "example.com", "api.example.org"}) {
    Redaction none = PlanRedaction(NewMiddlewares(false), host, {});
    CHECK(none.filter == nullptr);
    CHECK_FALSE(none.refusal.has_value());
    CHECK_FALSE(RedactsMessages(NewMiddlewares(false), host));
  }
  CHECK(RedactsMessages(NewMiddlewares(false), "api.example.com"));
}

TEST_CASE("A character cut in two by the network is none the worse") {
  std::string out;
  CHECK_FALSE(Run(false, {"a\xe2", "\x82", "\xac sk-" + kRest, ""}, out).has_value());
  CHECK(out == "a\xe2\x82\xac [REDACTED]");
}

TEST_CASE("What is not UTF-8 is refused by fail_closed and passes with fail_open") {
  for (const std::vector<std::string>& pieces :
       {std::vector<std::string>{"a sk-\xff", "\xfe sk-" + kRest}, {"a sk-\xff\xfe sk-" + kRest}}) {
    std::string out;
    std::optional<OutgoingRefusal> refusal = Run(false, pieces, out);
    REQUIRE(refusal.has_value());
    CHECK(refusal->answer.status == 503);
    CHECK(refusal->engine == record::Engine::kMiddleware);
    out.clear();
    CHECK_FALSE(Run(true, pieces, out).has_value());
    CHECK(out == "a sk-\xff\xfe sk-" + kRest);
  }
  std::string out;
  CHECK(Run(false, {"cut \xe2\x82"}, out).has_value());
}

TEST_CASE("What is compressed is refused by fail_closed and passes with fail_open") {
  const codec::HttpFields twice = {{"Content-Encoding", "identity"}, {"Content-Encoding", "gzip"}};
  CHECK(PlanRedaction(NewMiddlewares(false), "api.example.com", twice).refusal.has_value());
  const codec::HttpFields plain = {{"Content-Encoding", "identity"}};
  CHECK(PlanRedaction(NewMiddlewares(false), "api.example.com", plain).filter != nullptr);
  const codec::HttpFields fields = {{"Content-Encoding", "gzip"}};
  CHECK(PlanRedaction(NewMiddlewares(false), "api.example.com", fields).refusal.has_value());
  Redaction open = PlanRedaction(NewMiddlewares(true), "api.example.com", fields);
  CHECK(open.filter == nullptr);
  CHECK_FALSE(open.refusal.has_value());
}

}  // namespace
}  // namespace gateway
