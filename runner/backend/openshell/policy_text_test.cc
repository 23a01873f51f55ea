// SPDX-License-Identifier: Apache-2.0
#include "backend/openshell/policy_text.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace openshell {
namespace {

policy::Policy Parsed(std::string_view text) {
  Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(text, {.file = "p.yml"});
  REQUIRE(parsed.ok());
  return std::move(parsed).value().policy;
}

std::string Rendered(const policy::Policy& policy) {
  Result<std::string> text = RenderPolicy(policy, {});
  REQUIRE(text.ok());
  return std::move(text).value();
}

TEST_CASE("a policy that was rendered means the same when it is read again") {
  for (const char* text : {
           R"(version: 1
network_policies:
  web:
    endpoints:
      - {host: api.example.com, port: 443, protocol: rest, enforcement: audit, access: read-only}
      - host: b.example.com
        ports: [443, 8443]
        protocol: rest
        path: /v1/**
        allow_encoded_slash: true
        allowed_ips: [10.0.0.0/16]
        rules: [{allow: {method: GET, path: /a/*, query: {t: {any: ["1", "b*"]}}}}]
        deny_rules: [{method: "*", path: /secret/**}]
      - {host: raw.example.com, port: 22, tls: skip}
    binaries: [{path: /usr/bin/curl}, {path: "/**"}])",
           R"(version: 1
filesystem_policy: {include_workdir: true, read_only: [/usr], read_write: [/tmp]}
landlock: {compatibility: hard_requirement}
process: {run_as_user: sandbox}
network_policies:
  calls:
    endpoints:
      - host: g.example.com
        port: 443
        protocol: graphql
        graphql_max_body_bytes: 1000
        persisted_queries: allow_registered
        graphql_persisted_queries: {abc: {operation_type: query, fields: [viewer]}}
        rules: [{allow: {operation_type: query, operation_name: "V*", fields: [viewer]}}]
      - host: m.example.com
        port: 443
        protocol: mcp
        mcp: {allow_all_known_mcp_methods: true, max_body_bytes: 2000}
        rules: [{allow: {method: tools/call, tool: "read_*"}}]
      - {host: r.example.com, port: 443, protocol: json-rpc, rules: [{allow: {method: ping}}]}
    binaries: [{path: /usr/bin/node}]
network_middlewares:
  m: {middleware: openshell/regex, order: 1, endpoints: {include: ["*.example.com"]}})",
           "version: 1\n"}) {
    CAPTURE(text);
    const std::string once = Rendered(Parsed(text));
    CHECK(Rendered(Parsed(once)) == once);
  }
}

TEST_CASE("what the short form gives the agent goes to every program, with its access enforced") {
  const std::string text =
      Rendered(Parsed("defaults: none\nendpoints: ['a.example.com:443:read-only']"));
  policy::Policy again = Parsed(text);
  REQUIRE(again.network.size() == 1);
  CHECK(again.network[0].binaries == std::vector<std::string>{"/**"});
  REQUIRE(again.network[0].endpoints.size() == 1);
  CHECK(again.network[0].endpoints[0].protocol == policy::Protocol::kRest);
  CHECK(again.network[0].endpoints[0].access == policy::Access::kReadOnly);
}

TEST_CASE("a credential goes to its own host or nowhere") {
  policy::Policy policy = Parsed(
      "version: 1\nnetwork_policies: {w: {endpoints: [{host: '*.example.com', port: 443, protocol: "
      "rest, access: full}, {host: api.test.example, port: 443, protocol: rest, access: full}], "
      "binaries: [{path: '/**'}]}}");
  Result<std::string> text = RenderPolicy(policy, {{{"api.test.example"}, "p-0"}});
  REQUIRE(text.ok());
  CHECK(text.value().find("\"provider\": \"p-0\"") != std::string::npos);
  CHECK(RenderPolicy(policy, {{{"a.example.com"}, "p-0"}}).error().code == Code::kUnsupported);
  CHECK(RenderPolicy(policy, {{{"elsewhere.test"}, "p-0"}}).error().code == Code::kUnsupported);
  CHECK(RenderPolicy(policy, {{{"api.test.example"}, "p-0"}, {{"api.test.example"}, "p-1"}})
            .error()
            .code == Code::kUnsupported);
}

TEST_CASE("each difference is told once, where it is; a policy as OpenShell has it has none") {
  auto differences = [](std::string_view text, Generation generation = Generation::k00) {
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(text, {.file = "p.yml"});
    REQUIRE(parsed.ok());
    return DifferencesOf(parsed.value(), generation);
  };
  const std::string head =
      "version: 1\nfilesystem_policy: {read_only: [/usr]}\nnetwork_policies:\n  a:\n    "
      "endpoints:\n";
  const std::string tail = "    binaries: [{path: /**}]\n";
  CHECK(differences(head + "      - {host: db.example.com, port: 5432}\n" + tail).empty());
  std::vector<PolicyDifference> found =
      differences(head + "      - {host: host.docker.internal, port: 80}\n" + tail);
  REQUIRE(found.size() == 1);
  CHECK(found[0].at.line == 6);
  CHECK(found[0].what.starts_with("host.docker.internal is the machine of the gateway"));
  // A loopback of 0.1 is the machine's, as here.
  CHECK(
      differences(head + "      - {host: host.docker.internal, port: 80}\n" + tail, Generation::k01)
          .empty());
  const std::string wide = head + "      - {host: 'a.*.example.com', port: 80}\n" + tail;
  CHECK(differences(wide).empty());
  CHECK(differences(wide, Generation::k01).size() == 1);
  const std::string brief = "endpoints: [\"a.example.com:443:read-write\"]\n";
  for (const std::string key : {"after_untrusted", "hosted_tools"}) {
    const std::string value = key == "hosted_tools" ? ": [web_search]\n" : ": {closes: [writes]}\n";
    const auto about = [&](const PolicyDifference& one) {
      return one.what.starts_with("'" + key + "' is not written");
    };
    const auto with = differences(brief + key + value);
    CHECK(std::count_if(with.begin(), with.end(), about) == 1);
    const auto without = differences(brief);
    CHECK(std::count_if(without.begin(), without.end(), about) == 0);
  }
  // Of the endpoints of the defaults, which have no line, each difference is named once.
  found = differences("defaults: minimal\n" + brief);
  const auto rest = [](const PolicyDifference& one) {
    return one.at.line == 0 && one.what.starts_with("'access' without 'protocol'");
  };
  CHECK(std::count_if(found.begin(), found.end(), rest) <= 1);
  // One about the short form, one about paths, one about the judgement of requests.
  CHECK(differences("defaults: none\nendpoints: [\"a.example.com:443:full:rest\"]\n").size() >= 2);
}

}  // namespace
}  // namespace openshell
