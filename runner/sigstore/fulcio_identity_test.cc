// SPDX-License-Identifier: Apache-2.0
// Tests of identities against rules, and of points in time.
#include "sigstore/fulcio_identity.h"

#include <catch2/catch.hpp>

#include "sigstore/trust/instant.h"

namespace sigstore {
namespace {

const FulcioIdentity kWorkflow{{"https://github.com/o/r/.github/workflows/w.yml@refs/heads/main"},
                               "https://token.actions.githubusercontent.com",
                               {{12, "https://github.com/o/r"}}};

std::string Match(const FulcioIdentity& identity, const IdentityRule& rule) {
  Checked<std::string> matched = MatchIdentity(identity, rule);
  return matched.ok() ? matched.value() : std::string(Render(matched.error().reason));
}

TEST_CASE("an identity is the whole name, or a glob for the whole of it") {
  auto [pattern, accepted] = GENERATE(table<std::string, bool>({
      {"https://github.com/o/r/.github/workflows/w.yml@refs/heads/main", true},
      {"https://github.com/o/r/.github/workflows/*@refs/heads/main", true},
      {"https://github.com/o/**", true},
      {"https://github.com/o/*", false},
      {"https://github.com/o/r/.github/workflows/w.yml@refs/heads/mai", false},
      {"github.com/o/r/.github/workflows/w.yml@refs/heads/main", false},
      {"https://github.com/O/r/.github/workflows/w.yml@refs/heads/main", false},
      {"https://github.com/o/r/.github/workflows/w?yml@refs/heads/main", true},
      {".*", false},
      {"", false},
  }));
  CAPTURE(pattern);
  std::string name = Match(kWorkflow, {kWorkflow.issuer, pattern, {}});
  CHECK(name == (accepted ? kWorkflow.names[0] : "identity-mismatch"));
}

TEST_CASE("an identity means nothing without the issuer that vouches for it") {
  IdentityRule rule{kWorkflow.issuer, "**", {}};
  CHECK(Match(kWorkflow, rule) == kWorkflow.names[0]);
  for (std::string issuer : {"https://token.actions.githubusercontent.com/", "**", "",
                             "https://TOKEN.actions.githubusercontent.com"}) {
    rule.issuer = issuer;
    CHECK(Match(kWorkflow, rule) == "issuer-mismatch");
  }
  FulcioIdentity none = kWorkflow;
  none.issuer = "";
  CHECK(Match(none, rule) == "issuer-mismatch");
}

TEST_CASE("any of several names may match; every claim must") {
  FulcioIdentity two = kWorkflow;
  two.names.insert(two.names.begin(), "dev@example.com");
  CHECK(Match(two, {two.issuer, "*@example.com", {}}) == "dev@example.com");
  CHECK(Match(two, {two.issuer, "https://**", {{12, "https://github.com/o/r"}}}) == two.names[1]);
  CHECK(Match(two, {two.issuer, "**", {{12, "https://github.com/o/s"}}}) == "claim-mismatch");
  CHECK(Match(two, {two.issuer, "**", {{13, ""}}}) == "claim-mismatch");
}

TEST_CASE("a wrong identity is told together with what would accept it") {
  Checked<std::string> matched = MatchIdentity(kWorkflow, {kWorkflow.issuer, "a@b.c", {}});
  REQUIRE_FALSE(matched.ok());
  CHECK(matched.error().identity == kWorkflow.names[0]);
  CHECK(matched.error().issuer == kWorkflow.issuer);
}

TEST_CASE("times of proto3 JSON are read to the nanosecond") {
  auto [text, seconds, nanos] = GENERATE(table<std::string, int64_t, int32_t>({
      {"1970-01-01T00:00:00Z", 0, 0},
      {"2022-12-31T23:59:59.999Z", 1672531199, 999000000},
      {"2022-12-31T23:59:59.000000001Z", 1672531199, 1},
      {"2024-02-29T12:00:00Z", 1709208000, 0},
      {"1969-12-31T23:59:59.5Z", -1, 500000000},
      {"9999-12-31T23:59:59Z", 253402300799, 0},
  }));
  CAPTURE(text);
  std::optional<Instant> instant = ParseInstant(text);
  REQUIRE(instant);
  CHECK(instant->seconds == seconds);
  CHECK(instant->nanos == nanos);
}

TEST_CASE("what is not such a time is none") {
  std::string text = GENERATE(
      "", "2024", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
      "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z",
      "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", "2024-01-01T00:00:00z",
      "2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00.1234567890Z",
      "2024-01-01T00:00:00.1", "2024-01-01T00:00:00.-1Z", "+024-01-01T00:00:00Z",
      "2024-01-01T00:00:00ZZ", "2024-01-01T00:00:00.5Z ");
  CAPTURE(text);
  CHECK_FALSE(ParseInstant(text));
}

TEST_CASE("both ends of an interval belong to it") {
  Interval interval{{10}, Instant{20, 5}};
  CHECK_FALSE(interval.Contains({9, 999999999}));
  CHECK(interval.Contains({10}));
  CHECK(interval.Contains({20, 5}));
  CHECK_FALSE(interval.Contains({20, 6}));
  CHECK(Interval{{10}, std::nullopt}.Contains({1000000000000}));
}

}  // namespace
}  // namespace sigstore
