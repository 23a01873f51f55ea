// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/body_judge.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "codec/data/json.h"
#include "policy/load/parse.h"

namespace gateway {
namespace {

constexpr std::string_view kPolicy =
    "version: 1\n"
    "network_policies:\n"
    "  a:\n"
    "    binaries: [{path: '/**'}]\n"
    "    endpoints:\n"
    "      - {host: api.example.com, port: 443, path: /graphql, protocol: graphql,\n"
    "         access: read-only, graphql_max_body_bytes: 100}\n"
    "      - host: api.example.com\n"
    "        port: 443\n"
    "        path: /mcp\n"
    "        protocol: mcp\n"
    "        rules: [{allow: {method: tools/call, tool: read_status}}]\n"
    "      - {host: api.example.com, port: 443, path: /other, protocol: rest, access: full}\n";

class Fixture {
 protected:
  Fixture() : compiled_(Parse()) {
    route_ = compiled_.FindRoute(compiled_.MatchCaller(caller_), "api.example.com", 443);
  }

  static policy::Policy Parse() {
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(kPolicy, {});
    INFO((parsed.ok() ? "" : parsed.error().what));
    REQUIRE(parsed.ok());
    return parsed.value().policy;
  }

  BodyQuestion Ask(std::string_view method, std::string_view path, bool forward = false) const {
    return {route_, caller_, method, path, path, "", fields_, framing_, forward, 3};
  }

  policy::Caller caller_ = {"/usr/bin/curl", {}, {}};
  policy::CompiledPolicy compiled_;
  policy::Route route_;
  codec::HttpFields fields_ = {{"Content-Type", "application/json"}};
  codec::BodyFraming framing_ = {codec::BodyFraming::kChunked, 0};
};

std::string ErrorOf(const BodyVerdict& verdict) {
  REQUIRE(verdict.refusal.has_value());
  Result<codec::Json> json = codec::ParseJson(verdict.refusal->answer.body);
  REQUIRE(json.ok());
  return json.value().StringAt("error");
}

constexpr std::string_view kToolCall =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop_tables"}})";

TEST_CASE_METHOD(Fixture, "FindBodyNeeds asks for the body where it counts, up to its bound") {
  CHECK_FALSE(FindBodyNeeds(Ask("POST", "/other")).has_value());
  std::optional<BodyNeeds> needs = FindBodyNeeds(Ask("POST", "/graphql"));
  REQUIRE(needs.has_value());
  CHECK(needs->bytes_max == 100);
  CHECK_FALSE(needs->verdict.has_value());
  CHECK(FindBodyNeeds(Ask("POST", "/mcp"))->bytes_max == 65536);
}

TEST_CASE_METHOD(Fixture, "What cannot be judged is refused before its body is read") {
  framing_ = {codec::BodyFraming::kLength, 101};
  std::optional<BodyNeeds> needs = FindBodyNeeds(Ask("POST", "/graphql"));
  REQUIRE(needs->verdict.has_value());
  CHECK_FALSE(needs->verdict->verdict.allowed);
  CHECK(needs->verdict->reason == "GraphQL request rejected: a body longer than 100 bytes");
  framing_.length = 100;
  CHECK_FALSE(FindBodyNeeds(Ask("POST", "/graphql"))->verdict.has_value());
  fields_.push_back({"Content-Encoding", "gzip"});
  needs = FindBodyNeeds(Ask("POST", "/graphql"));
  REQUIRE(needs->verdict.has_value());
  CHECK(needs->verdict->refusal->answer.status == 403);
}

TEST_CASE_METHOD(Fixture, "A stream that only receives needs no body with mcp") {
  framing_ = {};
  fields_ = {{"Accept", "text/event-stream"}};
  std::optional<BodyNeeds> needs = FindBodyNeeds(Ask("GET", "/mcp"));
  REQUIRE(needs->verdict.has_value());
  CHECK(needs->verdict->verdict.allowed);
  CHECK_FALSE(needs->verdict->refusal.has_value());
  fields_ = {{"Accept", "*/*"}};
  CHECK_FALSE(FindBodyNeeds(Ask("GET", "/mcp"))->verdict.has_value());
}

TEST_CASE_METHOD(Fixture, "An upgrade to WebSocket is refused, whatever would receive") {
  fields_ = {{"Accept", "text/event-stream"}};
  framing_ = {};
  BodyQuestion question = Ask("GET", "/mcp");
  CHECK(FindBodyNeeds(question)->verdict->verdict.allowed);
  question.websocket_upgrade = true;
  std::optional<BodyNeeds> needs = FindBodyNeeds(question);
  REQUIRE((needs.has_value() && needs->verdict.has_value()));
  CHECK(needs->verdict->verdict.reason == policy::Reason::kUpgradeNotJudged);
  CHECK(needs->verdict->protocol == "websocket");
  CHECK(ErrorOf(*needs->verdict) == "policy_denied");
}

TEST_CASE_METHOD(Fixture, "An allowed operation passes, and its record says what it was") {
  BodyVerdict verdict = JudgeBody(Ask("POST", "/graphql"), R"({"query":"query V{viewer}"})");
  CHECK(verdict.verdict.allowed);
  CHECK_FALSE(verdict.refusal.has_value());
  CHECK(verdict.engine == record::Engine::kL7Graphql);
  CHECK(verdict.message ==
        "GRAPHQL_L7_REQUEST allow POST api.example.com:443/graphql operations=query:V "
        "reason=allowed by policy 'a'");
}

TEST_CASE_METHOD(Fixture, "A refused one gets OpenShell's denial in a tunnel") {
  BodyVerdict verdict = JudgeBody(Ask("POST", "/mcp"), kToolCall);
  REQUIRE(verdict.refusal.has_value());
  CHECK(verdict.refusal->answer.status == 403);
  Result<codec::Json> json = codec::ParseJson(verdict.refusal->answer.body);
  REQUIRE(json.ok());
  CHECK(json.value().StringAt("error") == "policy_denied");
  CHECK(json.value().StringAt("protocol") == "mcp");
  CHECK(json.value().StringAt("layer") == "l7");
  CHECK(json.value().StringAt("detail") == "POST /mcp not permitted by policy");
  CHECK(verdict.refusal->engine == record::Engine::kL7Mcp);
  CHECK(verdict.message ==
        "JSONRPC_L7_REQUEST decision=deny rule_methods=tools/call tools=drop_tables "
        "http_method=POST endpoint=api.example.com:443/mcp policy_version=3 reason=POST /mcp not "
        "permitted by policy");
}

TEST_CASE_METHOD(Fixture, "What rules refuse is told by what it carried, and malformed is not") {
  BodyVerdict tool = JudgeBody(Ask("POST", "/mcp"), kToolCall);
  CHECK(tool.protocol == "mcp");
  REQUIRE(tool.operations.size() == 1);
  CHECK(tool.operations[0].method == "tools/call");
  CHECK(tool.operations[0].tool == "drop_tables");
  BodyVerdict mutation = JudgeBody(Ask("POST", "/graphql"), R"({"query":"mutation N{a b}"})");
  CHECK(mutation.protocol == "graphql");
  REQUIRE(mutation.operations.size() == 1);
  CHECK(policy::OperationText(mutation.operations[0]) == "mutation N {a, b}");
  BodyVerdict hash = JudgeBody(Ask("POST", "/graphql"), R"({"id":"3f2a"})");
  REQUIRE(hash.operations.size() == 1);
  CHECK(hash.operations[0].persisted_query == "3f2a");
  CHECK(JudgeBody(Ask("POST", "/graphql"), R"({"query":"{a"})").operations.empty());
  CHECK(JudgeBody(Ask("POST", "/graphql"), R"({"query":"{viewer}"})").operations.empty());
}

TEST_CASE_METHOD(Fixture, "The proxy's own clients get OpenShell's other answers") {
  BodyVerdict denied = JudgeBody(Ask("POST", "/mcp", true), kToolCall);
  CHECK(ErrorOf(denied) == "policy_denied");
  CHECK(denied.refusal->answer.body.find("denied by L7 policy: POST /mcp not permitted") !=
        std::string::npos);
  BodyVerdict graphql = JudgeBody(Ask("POST", "/graphql", true), "{");
  CHECK(graphql.refusal->answer.status == 400);
  CHECK(ErrorOf(graphql) == "invalid_graphql_request");
  BodyVerdict rpc = JudgeBody(Ask("POST", "/mcp", true), "{");
  CHECK(rpc.refusal->answer.status == 400);
  CHECK(ErrorOf(rpc) == "invalid_jsonrpc_request");
}

TEST_CASE_METHOD(Fixture, "Names that a client chose do not make a record long") {
  std::string batch = "[";
  for (int i = 0; i < 200; ++i) {
    if (i > 0) batch += ",";
    batch += R"({"jsonrpc":"2.0","method":"method)" + std::to_string(i) + "\"}";
  }
  BodyVerdict verdict = JudgeBody(Ask("POST", "/mcp"), batch + "]");
  CHECK_FALSE(verdict.verdict.allowed);
  CHECK(verdict.message.size() < 1000);
}

}  // namespace
}  // namespace gateway
