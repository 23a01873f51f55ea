// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/websocket_judge.h"

#include <catch2/catch.hpp>

#include "policy/load/parse.h"

namespace gateway {
namespace {

constexpr char kPolicy[] = R"(
version: 1
network_policies:
  ws:
    endpoints:
      - host: ws.example
        port: 443
        path: /chat
        protocol: websocket
        rules:
          - allow: {method: GET, path: /chat}
          - allow: {method: WEBSOCKET_TEXT, path: /chat}
      - host: ws.example
        port: 443
        path: /quiet
        protocol: websocket
        websocket_credential_rewrite: true
        rules:
          - allow: {method: GET, path: /quiet}
      - host: ws.example
        port: 443
        path: /graphql
        protocol: websocket
        rules:
          - allow: {operation_type: subscription, fields: [news]}
          - allow: {method: GET, path: /graphql}
      - {host: ws.example, port: 443, path: /audit, protocol: websocket, enforcement: audit, access: read-only}
      - {host: ws.example, port: 443, path: /rest, protocol: rest, access: full}
    binaries: [{path: /usr/bin/node}]
)";

// A judge with everything it borrows.
class Bench {
 public:
  explicit Bench(const std::string& yaml = kPolicy) : compiled_(Parse(yaml)) {
    secrets_.push_back({"TOKEN", "ws.example", Secret("s3cret")});
    credentials_.emplace(std::move(secrets_));
    route_ = compiled_.FindRoute(compiled_.MatchCaller(caller_), "ws.example", 443);
  }

  // The code to close with, or the text that goes on.
  std::string Text(const std::string& path, std::string text, MessageTreatment treatment) {
    PolicyMessageJudge judge = NewJudge(path, treatment);
    std::optional<WebSocketEnd> end = judge.JudgeText(text);
    return end ? std::to_string(static_cast<int>(end->close)) : text;
  }
  PolicyMessageJudge NewJudge(const std::string& path, MessageTreatment treatment) {
    path_ = path;
    record::Event opened;
    opened.kind = record::Event::Kind::kRequest;
    opened.host = "ws.example";
    opened.port = 443;
    opened.path = path;
    return PolicyMessageJudge({route_, caller_, file_, *credentials_, Target(path_), "", treatment},
                              opened, [this](record::Event event) {
                                events.push_back(std::move(event));
                                return recording;
                              });
  }
  MessageTreatment Find(const std::string& path) {
    return FindMessageTreatment(route_, compiled_.source().middlewares, Target(path));
  }

  std::vector<record::Event> events;
  bool recording = true;

 private:
  static policy::Policy Parse(const std::string& yaml) {
    Result<policy::ParsedPolicy> parsed = policy::ParsePolicy(yaml, {"p.yml", {}});
    INFO((parsed.ok() ? "" : parsed.error().what));
    REQUIRE(parsed.ok());
    return std::move(parsed).value().policy;
  }
  static CredentialTarget Target(const std::string& path) {
    return {"ws.example", 443, path, true, false};
  }

  policy::Caller caller_{"/usr/bin/node", {}, {}};
  std::string file_ = "p.yml";
  std::string path_;
  policy::CompiledPolicy compiled_;
  policy::Route route_;
  std::vector<BoundSecret> secrets_;
  std::optional<Credentials> credentials_;
};

constexpr MessageTreatment kJudged{true, false, false};

TEST_CASE("Which WebSockets have their messages read follows from the endpoint") {
  Bench bench;
  CHECK(bench.Find("/chat").judged);
  CHECK_FALSE(bench.Find("/chat").rewrites);
  CHECK(bench.Find("/quiet").rewrites);
  CHECK_FALSE(bench.Find("/rest").any());
}

TEST_CASE("A message passes by a rule for WEBSOCKET_TEXT, and is recorded") {
  Bench bench;
  CHECK(bench.Text("/chat", "hello", kJudged) == "hello");
  CHECK(bench.Text("/quiet", "hello", kJudged) == "1008");
  REQUIRE(bench.events.size() == 2);
  CHECK(bench.events[0].outcome == record::Event::Outcome::kAllowed);
  CHECK(bench.events[0].method == "WEBSOCKET_TEXT");
  CHECK(bench.events[0].engine == record::Engine::kL7WebSocket);
  CHECK(bench.events[1].outcome == record::Event::Outcome::kDenied);
  CHECK(bench.events[1].reason == "WEBSOCKET_TEXT /quiet not permitted by policy");
  CHECK(bench.events[1].message.starts_with(
      "WEBSOCKET_L7_REQUEST deny WEBSOCKET_TEXT ws.example:443/quiet reason="));
}

TEST_CASE("An endpoint in audit lets a message pass and says so") {
  Bench bench;
  CHECK(bench.Text("/audit", "hello", kJudged) == "hello");
  CHECK(bench.events.at(0).outcome == record::Event::Outcome::kAudited);
}

TEST_CASE("A GraphQL subscription is judged by its operation") {
  Bench bench;
  const auto ask = [&](const std::string& type, const std::string& query) {
    return bench.Text(
               "/graphql",
               R"({"type":")" + type + R"(","id":"1","payload":{"query":")" + query + R"("}})",
               kJudged) != "1008";
  };
  CHECK(ask("subscribe", "subscription { news }"));
  CHECK(ask("start", "subscription { news }"));
  CHECK(ask("complete", "mutation { never looked at }"));
  CHECK_FALSE(ask("subscribe", "subscription { prices }"));
  CHECK_FALSE(ask("subscribe", "subscription { news: prices }"));
  CHECK_FALSE(ask("subscribe", "mutation { news }"));
  CHECK_FALSE(ask("subscribe", "subscription { news"));
  CHECK_FALSE(ask("unknown", "subscription { news }"));
}

TEST_CASE("A refused message is recorded with the operation that it carried") {
  Bench bench;
  bench.Text("/graphql",
             R"({"type":"subscribe","id":"1","payload":{"query":"subscription { prices }"}})",
             kJudged);
  bench.Text("/quiet", "hello", kJudged);
  REQUIRE(bench.events.size() == 2);
  CHECK(bench.events[0].protocol == "websocket");
  REQUIRE(bench.events[0].operations.size() == 1);
  CHECK(policy::OperationText(bench.events[0].operations[0]) == "subscription {prices}");
  CHECK(bench.events[1].protocol == "websocket");
  CHECK(bench.events[1].operations.empty());
}

TEST_CASE("Placeholders become credentials, and their failure ends the connection") {
  Bench bench;
  const MessageTreatment rewrites{false, false, true};
  CHECK(bench.Text("/quiet", "key openshell:resolve:env:TOKEN", rewrites) == "key s3cret");
  CHECK(bench.events.empty());
  CHECK(bench.Text("/quiet", "key openshell:resolve:env:OTHER", rewrites) == "1008");
  REQUIRE(bench.events.size() == 1);
  CHECK(bench.events[0].engine == record::Engine::kCredentials);
  CHECK(bench.events[0].message.find("s3cret") == std::string::npos);
}

TEST_CASE("Binary messages pass where a text message may say anything, and only there") {
  Bench bench;
  CHECK_FALSE(bench.NewJudge("/chat", kJudged).JudgeBinary().has_value());
  CHECK_FALSE(bench.NewJudge("/rest", {}).JudgeBinary().has_value());
  CHECK(bench.events.empty());
  CHECK(bench.NewJudge("/quiet", kJudged).JudgeBinary()->close == codec::WebSocketClose::kPolicy);
  CHECK(bench.events.at(0).reason == "WEBSOCKET_TEXT /quiet not permitted by policy");
  CHECK(bench.NewJudge("/graphql", kJudged).JudgeBinary()->close ==
        codec::WebSocketClose::kNotText);
  CHECK(bench.events.at(1).outcome == record::Event::Outcome::kDenied);
  CHECK(bench.events[1].reason == "GraphQL request rejected: a binary message is not read");
  CHECK_FALSE(bench.NewJudge("/audit", kJudged).JudgeBinary().has_value());
  CHECK(bench.events.at(2).outcome == record::Event::Outcome::kAudited);
}

TEST_CASE("A WebSocket is judged by the endpoint of its path as any server reads it") {
  Bench bench;
  CHECK(bench.Find("/x/..%5Cchat").judged == bench.Find("/nothing").judged);
  CHECK(bench.Find("%5Cchat").judged);
}

TEST_CASE("Binary messages are refused where credentials are put in") {
  Bench bench;
  CHECK(bench.NewJudge("/quiet", {true, false, true}).JudgeBinary()->close ==
        codec::WebSocketClose::kPolicy);
  CHECK(bench.events.at(0).outcome == record::Event::Outcome::kDenied);
}

TEST_CASE("Keys are written over") {
  Bench bench;
  CHECK(bench.Text("/chat", "sk-abcdefghijklmnopqrst", {false, true, false}) == "[REDACTED]");
}

TEST_CASE("What cannot be recorded does not pass") {
  Bench bench;
  bench.recording = false;
  CHECK(bench.Text("/chat", "hello", kJudged) == "1011");
}

}  // namespace
}  // namespace gateway
