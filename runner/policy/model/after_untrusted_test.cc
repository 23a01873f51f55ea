// SPDX-License-Identifier: Apache-2.0
#include "policy/model/after_untrusted.h"

#include <catch2/catch.hpp>

#include "policy/model/access.h"
#include "policy/model/policy.h"

namespace policy {
namespace {

Endpoint Rest(const std::string& host, std::vector<uint16_t> ports = {443},
              Access access = Access::kReadWrite) {
  Endpoint endpoint;
  endpoint.host = host;
  endpoint.ports = std::move(ports);
  endpoint.protocol = Protocol::kRest;
  endpoint.rules = ExpandAccess(Protocol::kRest, access, {});
  return endpoint;
}

Policy Of(std::vector<Endpoint> endpoints, AfterUntrusted rules) {
  NetworkPolicy network;
  network.key = "only";
  network.endpoints = std::move(endpoints);
  Policy policy;
  policy.network = {network};
  policy.hosted_tools = {{"web_search", {}}, {"urls", {}}};
  policy.after_untrusted = std::move(rules);
  return policy;
}

// "host:port" of what is left, each with "r" where it only reads.
std::vector<std::string> Left(const Policy& narrowed) {
  std::vector<std::string> left;
  for (const Endpoint& one : narrowed.network.front().endpoints) {
    for (uint16_t port : one.ports) {
      left.push_back(one.host + ":" + std::to_string(port) + (one.only_reads ? "r" : ""));
    }
  }
  return left;
}

using Names = std::vector<std::string>;
const std::vector<HostPort> kNone;

TEST_CASE("Writes close: what is inspected reads on, and what is not is gone") {
  Endpoint raw;
  raw.host = "raw.example.com";
  raw.ports = {22};
  Endpoint mcp = Rest("mcp.example.com");
  mcp.protocol = Protocol::kMcp;
  const Policy narrowed = Narrow(
      Of({Rest("a.example.com"), Rest("m.example.com"), raw, mcp}, {{{"writes"}, {}}, {}, {}}),
      {{"m.example.com", 443}}, kNone, "why");
  CHECK(Left(narrowed) == Names{"a.example.com:443r", "m.example.com:443"});
  CHECK(narrowed.narrowed_by == "why");
  CHECK(narrowed.hosted_tools.size() == 2);
}

TEST_CASE("Where writes are closed, git still fetches, and does not push") {
  Endpoint forge = Rest("git.example.com");
  forge.rules = {RequestRule("GET", "/**", {}), RequestRule("POST", "/**/git-upload-pack", {}),
                 RequestRule("POST", "/**/git-receive-pack", {}),
                 RequestRule("POST", "/git-upload-pack/**", {})};
  REQUIRE(KeepReading(&forge));
  std::string left;
  for (const HttpRule& rule : forge.rules) left += rule.method + rule.path + " ";
  CHECK(left == "GET/** POST/**/git-upload-pack ");
}

TEST_CASE("Hosts, ports, credentials and hosted tools close one by one") {
  const std::vector<Endpoint> endpoints = {Rest("a.example.com", {443, 8443}),
                                           Rest("b.example.com")};
  const auto left = [&](Doors closes, Doors stays, const std::vector<HostPort>& bound = {}) {
    return Left(Narrow(Of(endpoints, {std::move(closes), std::move(stays), {}}), kNone, bound, ""));
  };
  CHECK(left({{"all"}, {}}, {}).empty());
  CHECK(left({{}, {{"a.example.com", 443}}}, {}) ==
        Names{"a.example.com:8443", "b.example.com:443"});
  CHECK(left({{}, {{"*.example.com", 0}}}, {{}, {{"b.example.com", 0}}}) ==
        Names{"b.example.com:443"});
  CHECK(left({{"credentials"}, {}}, {}, {{"b.example.com", 0}}) ==
        Names{"a.example.com:443", "a.example.com:8443"});
  CHECK(left({{"urls"}, {}}, {}).size() == 3);
  const Policy tools = Narrow(Of(endpoints, {{{"urls"}, {}}, {}, {}}), kNone, kNone, "");
  REQUIRE(tools.hosted_tools.size() == 1);
  CHECK(tools.hosted_tools[0].kind == "web_search");
  CHECK(Narrow(Of(endpoints, {{{"hosted_tools"}, {}}, {}, {}}), kNone, kNone, "")
            .hosted_tools.empty());
  const Policy kept = Narrow(Of(endpoints, {{{"all"}, {}}, {{"urls"}, {}}, {}}), kNone, kNone, "");
  REQUIRE(kept.hosted_tools.size() == 1);
  CHECK(kept.hosted_tools[0].kind == "urls");
}

TEST_CASE("Of a pattern, what stays is kept by name, without private addresses") {
  const Policy narrowed = Narrow(Of({Rest("*.example.com")}, {{{"all"}, {}}, {}, {}}),
                                 {{"m.example.com", 443}, {"m.example.org", 443}}, kNone, "");
  REQUIRE(Left(narrowed) == Names{"m.example.com:443"});
  CHECK(narrowed.network.front().endpoints.front().of_pattern);
  const Policy one =
      Narrow(Of({Rest("*.example.com")}, {{{}, {{"a.example.com", 0}}}, {}, {}}), kNone, kNone, "");
  CHECK(Left(one).empty());
}

TEST_CASE("Without closes a policy stays as it is") {
  const Policy same = Narrow(Of({Rest("a.example.com", {1, 2})}, {}), kNone, kNone, "why");
  CHECK(Left(same) == Names{"a.example.com:1", "a.example.com:2"});
  CHECK(same.narrowed_by.empty());
}

TEST_CASE("The rules are rendered as they are written") {
  CHECK(RenderAfterUntrusted({}) == "none");
  CHECK(
      RenderAfterUntrusted(
          {{{"writes"}, {{"*.example.com", 443}}}, {{}, {{"a.example.com", 0}}}, {{"::1", 80}}}) ==
      "{closes: [writes, \"*.example.com:443\"], stays: [a.example.com], trusts: [\"[::1]:80\"]}");
}

}  // namespace
}  // namespace policy
