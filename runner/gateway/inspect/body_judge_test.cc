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

int64_t RpcErrorOf(const BodyVerdict& verdict) {
  REQUIRE(verdict.refusal.has_value());
  Result<codec::Json> json = codec::ParseJson(verdict.refusal->answer.body);
  REQUIRE(json.ok());
  REQUIRE(json.value().Find("error") != nullptr);
  CHECK(json.value().IntegerAt("id") == 1);
  return json.value().Find("error")->IntegerAt("code");
}

constexpr std::string_view kModernCall =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_status","_meta":)"
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";

TEST_CASE_METHOD(Fixture, "A request of MCP whose header disagrees is answered by its protocol") {
  fields_.push_back({"MCP-Protocol-Version", "2026-07-28"});
  fields_.push_back({"Mcp-Method", "tools/call"});
  fields_.push_back({"Mcp-Name", "read_status"});
  CHECK(JudgeBody(Ask("POST", "/mcp"), kModernCall).verdict.allowed);
  fields_.back().value = "drop_tables";
  for (bool forward : {false, true}) {
    BodyVerdict verdict = JudgeBody(Ask("POST", "/mcp", forward), kModernCall);
    CHECK_FALSE(verdict.verdict.allowed);
    CHECK(RpcErrorOf(verdict) == -32020);
    CHECK(verdict.refusal->answer.status == 400);
    CHECK(verdict.reason ==
          "JSON-RPC request rejected: the header and the body disagree: Mcp-Name is 'drop_tables', "
          "and the body's name is not");
  }
}

TEST_CASE_METHOD(Fixture, "A stream that only receives has no header that describes a message") {
  framing_ = {};
  fields_ = {{"Accept", "text/event-stream"}, {"Mcp-Protocol-Version", "2025-11-25"}};
  CHECK(FindBodyNeeds(Ask("GET", "/mcp"))->verdict->verdict.allowed);
  fields_.push_back({"Mcp-Method", "tools/call"});
  CHECK_FALSE(FindBodyNeeds(Ask("GET", "/mcp"))->verdict->verdict.allowed);
}

TEST_CASE("A policy of 2025 refuses server/discover so that clients fall back") {
  const std::string discover =
      R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":)"
      R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
  const codec::HttpFields fields = {{"Content-Type", "application/json"},
                                    {"MCP-Protocol-Version", "2026-07-28"},
                                    {"Mcp-Method", "server/discover"}};
  const policy::Caller caller = {"/usr/bin/curl", {}, {}};
  for (const char* method : {"initialize", "tools/list", "server/discover"}) {
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(
        "version: 1\nnetwork_policies: {a: {binaries: [{path: '/**'}], endpoints: [{host: "
        "h.example, "
        "port: 443, protocol: mcp, rules: [{allow: {method: " +
            std::string(method) + "}}]}]}}\n",
        {});
    REQUIRE(parsed.ok());
    const policy::CompiledPolicy compiled(parsed.value().policy);
    const policy::Route route = compiled.FindRoute(compiled.MatchCaller(caller), "h.example", 443);
    const BodyQuestion question{route, caller, "POST", "/",
                                "/",   "",     fields, {codec::BodyFraming::kChunked, 0}};
    BodyVerdict verdict = JudgeBody(question, discover);
    INFO(method);
    CHECK(verdict.verdict.allowed == (method == std::string("server/discover")));
    if (verdict.verdict.allowed) continue;
    REQUIRE(verdict.operations.size() == 1);
    CHECK(verdict.operations[0].method == "server/discover");
    const bool falls_back = method == std::string("initialize");
    CHECK(verdict.refusal->answer.status == (falls_back ? 400 : 403));
    if (!falls_back) continue;
    CHECK(RpcErrorOf(verdict) == -32022);
    CHECK(verdict.refusal->answer.body.find("{allow: {method: server/discover}}") !=
          std::string::npos);
    CHECK(verdict.refusal->answer.body.find(R"("supported":["2025-11-25")") != std::string::npos);
  }
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
