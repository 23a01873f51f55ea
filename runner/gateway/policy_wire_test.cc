// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_wire.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

// Something other than its default in every kind of member.
policy::Policy NewPolicy() {
  policy::HttpRule rule;
  rule.method = "GET";
  rule.path = "/**";
  rule.query = {{"q", {"a*", "b"}}};
  rule.fields = {"viewer"};
  rule.at = {7, 3};
  policy::Endpoint endpoint;
  endpoint.host = "*.example";
  endpoint.ports = {443, 8443};
  endpoint.protocol = policy::Protocol::kMcp;
  endpoint.enforcement = policy::Enforcement::kAudit;
  endpoint.rules = {rule};
  endpoint.deny_rules = {rule, rule};
  endpoint.allowed_ips = {"10.0.0.0/8"};
  endpoint.persisted_queries = {{"id", "query", "", {"f"}}};
  endpoint.body_bytes_max = 4096;
  endpoint.mcp.strict_tool_names = false;
  policy::NetworkPolicy network;
  network.key = "k";
  network.name = "n";
  network.endpoints = {endpoint, endpoint};
  network.binaries = {"/usr/bin/curl"};
  policy::Middleware middleware;
  middleware.name = "m";
  middleware.order = -3;
  middleware.include = {"**"};
  policy::Policy policy;
  policy.network = {network};
  policy.middlewares = {middleware};
  return policy;
}

TEST_CASE("A policy comes back as it was sent") {
  std::string bytes = RenderPolicyWire(NewPolicy());
  std::optional<policy::Policy> policy = ParsePolicyWire(bytes);
  REQUIRE(policy.has_value());
  CHECK(RenderPolicyWire(*policy) == bytes);
  const policy::Endpoint& endpoint = policy->network.at(0).endpoints.at(1);
  CHECK(endpoint.ports == std::vector<uint16_t>{443, 8443});
  CHECK(endpoint.protocol == policy::Protocol::kMcp);
  CHECK(endpoint.deny_rules.at(1).query.at(0).any.at(1) == "b");
  CHECK(endpoint.deny_rules.at(1).at.line == 7);
  CHECK_FALSE(endpoint.mcp.strict_tool_names);
  CHECK(policy->middlewares.at(0).order == -3);
}

TEST_CASE("A policy that is cut or has bytes behind it is none") {
  std::string bytes = RenderPolicyWire(NewPolicy());
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(ParsePolicyWire(std::string_view(bytes).substr(0, size)).has_value());
  }
  CHECK_FALSE(ParsePolicyWire(bytes + "x").has_value());
}

}  // namespace
}  // namespace gateway
