// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <utility>

#include "codec/glob/glob.h"
#include "policy/decide/test_policy.h"
#include "policy/load/parse.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

TEST_CASE("FindRoute finds every kind of host and no other") {
  CompiledPolicy compiled = Compile(kPolicy);
  for (std::string_view host :
       {"exact.example.com", "EXACT.example.com", "x.wild.example.com", "a.b.deep.example.com",
        "api-1.example.com", "bucket.s3.eu.example.com", "exact.example.com.",
        "x.wild.example.com."}) {
    INFO(host);
    CHECK(RouteOf(compiled, host).connection().allowed);
  }
  for (std::string_view host :
       {"example.com", "wild.example.com", "a.b.wild.example.com", "deep.example.com",
        "xapi-1.example.com", "bucket.s3.example.com", "exact.example.com.evil.com",
        "exact.example.com..", "example.com.", ".", ""}) {
    INFO(host);
    Route route = RouteOf(compiled, host);
    CHECK_FALSE(route.connection().allowed);
    CHECK(route.connection().reason == Reason::kNoEndpoint);
  }
  CHECK(RouteOf(compiled, "x.wild.example.com", 8443).connection().allowed);
  CHECK_FALSE(RouteOf(compiled, "exact.example.com", 8443).connection().allowed);
  CHECK(RouteOf(compiled, "any.name.at.all", 9000).connection().allowed);
  CHECK(RouteOf(compiled, "any.name.at.all.", 9000).connection().allowed);
}

TEST_CASE("NamesHost knows hosts whatever the port and the program") {
  CompiledPolicy compiled = Compile(kPolicy);
  CHECK(compiled.NamesHost("x.wild.example.com"));
  CHECK(compiled.NamesHost("rest.example.com"));
  CompiledPolicy narrow = Compile(
      "version: 1\nnetwork_policies:\n"
      "  a: {endpoints: [{host: a.example.com, port: 1}], binaries: []}\n");
  CHECK(narrow.NamesHost("a.example.com"));
  CHECK_FALSE(narrow.NamesHost("b.example.com"));
}

TEST_CASE("A compiled policy that moves keeps the routes made from it") {
  CompiledPolicy compiled = Compile(kPolicy);
  Route route = RouteOf(compiled, "rest.example.com");
  CompiledPolicy moved = std::move(compiled);
  CHECK(route.Decide({"GET", "/repos/a", ""}).allowed);
  CHECK(moved.source().network.size() == 2);
}

TEST_CASE("A verdict points at the policy, the endpoint and the rule that decided") {
  CompiledPolicy compiled = Compile(kPolicy);
  Route route = RouteOf(compiled, "rest.example.com");
  Verdict allowed = route.Decide({"POST", "/repos/x/issues", ""});
  CHECK(allowed.allowed);
  CHECK(allowed.policy_name() == "b_rest");
  REQUIRE(allowed.rule != nullptr);
  CHECK(allowed.rule->path == "/repos/*/issues");
  REQUIRE(allowed.governing != nullptr);
  CHECK(allowed.governing->host == "rest.example.com");
  Verdict denied = route.Decide({"HEAD", "/repos/secret/x", ""});
  CHECK_FALSE(denied.allowed);
  CHECK(denied.reason == Reason::kDenyRule);
  CHECK(denied.at().line == 21);
}

TEST_CASE("Of several rules that match, the first one written is named") {
  std::string yaml =
      "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: '/**'}]\n    endpoints:\n"
      "      - host: a.example.com\n        port: 443\n        protocol: rest\n        rules:\n";
  for (int i = 0; i < 50; ++i) {
    yaml += "          - allow: {method: GET, path: /a/b/c" + std::to_string(i) + "}\n";
  }
  yaml +=
      "          - allow: {method: GET, path: '/a/**'}\n"
      "          - allow: {method: GET, path: '**'}\n"
      "          - allow: {method: GET, path: /a/b/c/d/e/f/g/h/i/}\n";
  CompiledPolicy compiled = Compile(yaml);
  Route route = RouteOf(compiled, "a.example.com");
  CHECK(route.Decide({"GET", "/a/b/c7", ""}).rule->path == "/a/b/c7");
  CHECK(route.Decide({"GET", "/a/b/c/d/e/f/g/h/i/", ""}).rule->path == "/a/**");
  CHECK(route.Decide({"GET", "/b", ""}).rule->path == "**");
  CHECK_FALSE(route.Decide({"POST", "/a/b/c7", ""}).allowed);
}

// So few letters that many patterns and values meet.
class Texts {
 public:
  std::string Make(std::string_view letters, size_t most) {
    std::string made;
    for (size_t size = 1 + random_() % most; made.size() < size;) {
      made += letters[random_() % letters.size()];
    }
    return made;
  }

 private:
  std::minstd_rand random_{20260102};
};

TEST_CASE("The first rule that matches is the one that each glob alone would name") {
  Texts texts;
  size_t allowed = 0;
  for (int round = 0; round < 200; ++round) {
    Endpoint endpoint;
    endpoint.host = "a.example.com";
    endpoint.ports = {443};
    endpoint.protocol = Protocol::kRest;
    for (int i = 0; i < 20; ++i) {
      HttpRule rule;
      rule.method = "GET";
      rule.path = (i % 3 == 0 ? "**/" : "/") + texts.Make("abcd/**/?", 9);
      endpoint.rules.push_back(rule);
    }
    const std::vector<HttpRule> rules = endpoint.rules;
    Policy policy;
    policy.network.push_back({});
    policy.network[0].binaries = {"/usr/bin/curl"};
    policy.network[0].endpoints.push_back(std::move(endpoint));
    CompiledPolicy compiled(std::move(policy));
    Route route = RouteOf(compiled, "a.example.com");
    for (int i = 0; i < 50; ++i) {
      const std::string path = "/" + texts.Make("abcd/", 9);
      const HttpRule* found = nullptr;
      for (const HttpRule& rule : rules) {
        if (found == nullptr && codec::GlobMatches(rule.path, path, '/')) found = &rule;
      }
      Verdict verdict = route.Decide({"GET", path, ""});
      INFO(path << " by " << (found == nullptr ? "nothing" : found->path));
      REQUIRE(verdict.allowed == (found != nullptr));
      if (found != nullptr) REQUIRE(verdict.rule->path == found->path);
      allowed += verdict.allowed ? 1 : 0;
    }
  }
  CHECK(allowed > 1000);
  CHECK(allowed < 9000);
}

TEST_CASE("An endpoint is found when its pattern alone matches the host") {
  Texts texts;
  size_t found = 0;
  for (int round = 0; round < 200; ++round) {
    Policy policy;
    std::vector<std::string> patterns;
    for (int i = 0; i < 10; ++i) {
      patterns.push_back(texts.Make("abc*", 4) + (i % 2 == 0 ? ".*" : "") + ".example.com");
      policy.network.push_back({});
      policy.network.back().binaries = {"/usr/bin/curl"};
      Endpoint endpoint;
      endpoint.host = patterns.back();
      endpoint.ports = {443};
      policy.network.back().endpoints.push_back(std::move(endpoint));
    }
    CompiledPolicy compiled(std::move(policy));
    for (int i = 0; i < 50; ++i) {
      const std::string host = texts.Make("abc.", 5) + ".example.com";
      bool wanted = false;
      for (const std::string& pattern : patterns) wanted = wanted || HostMatches(pattern, host);
      INFO(host);
      REQUIRE(RouteOf(compiled, host).connection().allowed == wanted);
      REQUIRE(compiled.NamesHost(host) == wanted);
      REQUIRE_FALSE(RouteOf(compiled, host, 80).connection().allowed);
      found += wanted ? 1 : 0;
    }
  }
  CHECK(found > 300);
}

TEST_CASE("A body that was not judged passes nowhere, in audit neither") {
  CompiledPolicy compiled = Compile(
      "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: '/**'}]\n    endpoints:\n"
      "      - {host: a.example.com, port: 443, path: /graphql, protocol: graphql, access: full,\n"
      "         enforcement: audit}\n"
      "      - {host: a.example.com, port: 443, protocol: rest, access: full}\n");
  Route route = RouteOf(compiled, "a.example.com");
  CHECK(route.NeedsBody("/graphql"));
  CHECK_FALSE(route.Decide({"POST", "/graphql", ""}).allowed);
  CHECK_FALSE(route.NeedsBody("/other"));
  CHECK(route.Decide({"POST", "/other", ""}).allowed);
}

}  // namespace
}  // namespace policy
