// SPDX-License-Identifier: Apache-2.0
#include "gateway/inspect/request_judge.h"

#include <catch2/catch.hpp>

#include "record/ocsf.h"

namespace gateway {
namespace {

using codec::FindField;

policy::HttpRule NewRule(const char* method, const char* path, int line) {
  policy::HttpRule rule;
  rule.method = method;
  rule.path = path;
  rule.at = {line, 3};
  return rule;
}

policy::Endpoint NewGraphqlEndpoint(policy::Endpoint endpoint) {
  endpoint.path = "/graphql";
  endpoint.protocol = policy::Protocol::kGraphql;
  endpoint.rules = {policy::HttpRule()};
  endpoint.rules[0].operation_type = "query";
  endpoint.deny_rules.clear();
  return endpoint;
}

// api.example:443 with GET anywhere and POST under /post, but nothing under /secret; and
// queries at /graphql.
policy::Policy NewPolicy(policy::Enforcement enforcement) {
  policy::Endpoint endpoint;
  endpoint.host = "api.example";
  endpoint.ports = {443, 8443};
  endpoint.protocol = policy::Protocol::kRest;
  endpoint.enforcement = enforcement;
  endpoint.rules = {NewRule("GET", "/**", 7), NewRule("POST", "/post/**", 8)};
  endpoint.deny_rules = {NewRule("GET", "/secret/**", 9)};
  policy::NetworkPolicy network;
  network.key = network.name = "api";
  network.endpoints = {endpoint, NewGraphqlEndpoint(endpoint)};
  network.binaries = {"/usr/bin/curl"};
  policy::Policy policy;
  policy.network = {network};
  return policy;
}

std::vector<BoundSecret> NewSecrets() {
  std::vector<BoundSecret> secrets;
  secrets.push_back({"TOKEN", "api.example", Secret("s3cret")});
  return secrets;
}

// A judge with everything it borrows.
class Bench {
 public:
  explicit Bench(bool forward = false, uint16_t port = 443,
                 policy::Enforcement enforcement = policy::Enforcement::kEnforce)
      : live_(NewPolicy(enforcement)),
        lease_(live_.Take()),
        route_(lease_->compiled().FindRoute(lease_->compiled().MatchCaller(caller_), "api.example",
                                            port)),
        credentials_(NewSecrets()),
        context_{*lease_, route_, file_, credentials_, caller_, {"api.example", port}, "https"} {
    context_.confidential = true;
    context_.forward = forward;
  }

  RequestVerdict Judge(const std::string& block) {
    Result<codec::RequestHead> head = codec::ParseRequestHead(block);
    INFO(block);
    REQUIRE(head.ok());
    return JudgeRequest(context_, head.value());
  }
  RequestVerdict Get(const std::string& target, const std::string& lines = "") {
    return Judge("GET " + target + " HTTP/1.1\r\nHost: api.example\r\n" + lines + "\r\n");
  }
  const RequestContext& context() const { return context_; }
  void ReplacePolicy() { live_.Replace(NewPolicy(policy::Enforcement::kEnforce)); }

 private:
  std::string file_ = "policy.yml";
  policy::Caller caller_{"/usr/bin/curl", {}, {}};
  LivePolicy live_;
  std::unique_ptr<LivePolicy::Lease> lease_;
  policy::Route route_;
  Credentials credentials_;
  RequestContext context_;
};

// Returns the answer that the client gets; empty if it gets none.
std::string AnswerOf(const RequestVerdict& verdict) {
  return verdict.refusal.has_value() ? RenderRefusal(*verdict.refusal) : "";
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("An allowed request is sent on with its canonical path and our Host") {
  RequestVerdict verdict = Bench().Get("//a/./b%7e?x=%20y", "Accept: z\r\nKeep-Alive: 1\r\n");
  CHECK(verdict.kind == RequestVerdict::kPass);
  CHECK(verdict.request.target == "/a/b~?x=%20y");
  CHECK(verdict.request.fields.at(0).value == "api.example");
  CHECK(FindField(verdict.request.fields, "accept") != nullptr);
  CHECK(FindField(verdict.request.fields, "keep-alive") == nullptr);
  CHECK(verdict.event.path == "/a/b~");
  CHECK(verdict.event.outcome == record::Event::Outcome::kAllowed);
}

TEST_CASE("A request that no rule allows is refused with the documented answer") {
  RequestVerdict verdict =
      Bench().Judge("DELETE /x?secret=1 HTTP/1.1\r\nHost: api.example\r\n\r\n");
  CHECK(verdict.kind == RequestVerdict::kRefuse);
  CHECK(Contains(AnswerOf(verdict), "HTTP/1.1 403 Forbidden\r\nX-OpenShell-Policy: api\r\n"));
  CHECK(Contains(AnswerOf(verdict), "\"rule\":\"DELETE /x\""));
  CHECK_FALSE(Contains(AnswerOf(verdict), "secret=1"));
  CHECK(verdict.event.outcome == record::Event::Outcome::kDenied);
  CHECK(verdict.event.engine == record::Engine::kL7);
}

TEST_CASE("A deny rule wins over every spelling of its path") {
  for (const char* target : {"/secret/x", "/a/../secret/x", "/%73ecret/x", "//secret//x",
                             "/secret;p/x", "https://api.example/secret/x"}) {
    INFO(target);
    CHECK(Bench().Get(target).kind == RequestVerdict::kRefuse);
  }
}

TEST_CASE("A request that names a second method has to be allowed as that, too") {
  auto post = [](const std::string& lines) {
    return Bench().Judge("POST /post/x HTTP/1.1\r\nHost: api.example\r\n" + lines + "\r\n");
  };
  CHECK(post("X-Custom: DELETE\r\n").kind == RequestVerdict::kPass);
  CHECK(post("X-HTTP-Method-Override: GET\r\n").kind == RequestVerdict::kPass);
  for (const char* name :
       {"X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X_HTTP_Method_Override"}) {
    RequestVerdict verdict = post("X-HTTP-Method: GET\r\n" + std::string(name) + ": DELETE\r\n");
    CHECK(Contains(AnswerOf(verdict), "DELETE /post/x not permitted by policy"));
    CHECK(verdict.event.method == "DELETE");
  }
  CHECK(post("X-HTTP-Method: delete\r\n").kind == RequestVerdict::kRefuse);
  for (const char* list : {"GET, DELETE", "DELETE, GET", "DELETE,", "GET;DELETE", " DELETE\tGET"}) {
    INFO(list);
    CHECK(post("X-HTTP-Method: " + std::string(list) + "\r\n").kind == RequestVerdict::kRefuse);
  }
  CHECK(post("X-HTTP-Method: GET, GET\r\n").kind == RequestVerdict::kPass);
}

TEST_CASE("A method in the query is one, too") {
  auto post = [](const std::string& query) {
    return Bench().Judge("POST /post/x?" + query + " HTTP/1.1\r\nHost: api.example\r\n\r\n");
  };
  for (const char* query : {"a=b", "method=DELETE", "a=_method", "_method=post", "_method=GET",
                            "X-HTTP-Method-Override=GET", "X-HTTP-Method-Overrides=DELETE"}) {
    INFO(query);
    CHECK(post(query).kind == RequestVerdict::kPass);
  }
  for (const char* query : {"_method=DELETE", "x=1;_method=DELETE", "_method=delete",
                            "a=b&%5fmethod=DELETE", "_HttpMethod=PATCH", "_method=GET&_method=PUT",
                            "X-HTTP-Method-Override=DELETE", "x%2Dhttp-method=PUT"}) {
    INFO(query);
    CHECK(Contains(AnswerOf(post(query)), "not permitted by policy"));
  }
}

TEST_CASE("A body that names a method is answered like the first method that is not allowed") {
  auto refusal = [](const std::string& path) -> std::optional<OutgoingRefusal> {
    Bench bench;
    RequestVerdict verdict = bench.Judge("POST " + path +
                                         " HTTP/1.1\r\nHost: api.example\r\nContent-Length: 2\r\n"
                                         "Content-Type: application/json\r\n\r\n");
    REQUIRE(verdict.kind == RequestVerdict::kPass);
    return RefuseOtherMethods(bench.context(), verdict);
  };
  std::optional<OutgoingRefusal> refused = refusal("/post/x");
  REQUIRE(refused.has_value());
  CHECK(refused->reason == "PUT /post/x not permitted by policy");
  CHECK(refused->event.value().method == "PUT");
  CHECK(Contains(refused->event.value().message, "the body names a method"));
  CHECK_FALSE(refusal("/graphql").has_value());
}

TEST_CASE("What is judged by its body goes out under its own method alone") {
  auto post = [](const std::string& path) {
    return Bench().Judge("POST " + path +
                         " HTTP/1.1\r\nHost: api.example\r\nContent-Length: 2\r\n" +
                         "Content-Type: application/json\r\nX-HTTP-Method-Override: GET\r\n\r\n");
  };
  RequestVerdict by_rules = post("/post/x");
  CHECK(by_rules.judged_body_bytes_max == 0);
  CHECK(FindField(by_rules.request.fields, "x-http-method-override") != nullptr);
  RequestVerdict by_body = post("/graphql");
  CHECK(by_body.judged_body_bytes_max > 0);
  CHECK(FindField(by_body.request.fields, "x-http-method-override") == nullptr);
}

TEST_CASE("What is judged are the fields that are sent on") {
  auto post = [](const std::string& lines) {
    return Bench().Judge("POST /graphql HTTP/1.1\r\nHost: api.example\r\nContent-Length: 2\r\n" +
                         lines + "\r\n");
  };
  const std::string gzip = "Content-Encoding: gzip\r\n";
  CHECK(post(gzip).kind == RequestVerdict::kRefuse);
  CHECK(post(gzip + "Connection: content-encoding\r\n").kind == RequestVerdict::kPass);
  // To the server, a body whose type stays here has no type.
  Bench bench;
  Result<codec::RequestHead> head = codec::ParseRequestHead(
      "POST /graphql HTTP/1.1\r\nHost: api.example\r\nContent-Length: 2\r\n"
      "Content-Type: application/json\r\n\r\n");
  const std::string body = R"({"query":"{ok}","x":"&query=mutation{evil}&z="})";
  for (bool nominated : {false, true}) {
    INFO(nominated);
    if (nominated) head.value().fields.push_back({"Connection", "content-type"});
    RequestVerdict allowed = JudgeRequest(bench.context(), head.value());
    CHECK(allowed.judged_body_bytes_max > 0);
    codec::BodyFraming framing{codec::BodyFraming::kLength, body.size()};
    CHECK(JudgeWholeBody(bench.context(), head.value(), framing, body, allowed).has_value() ==
          nominated);
  }
}

TEST_CASE("Fields that stand for the path stay here") {
  RequestVerdict verdict = Bench().Get(
      "/a", "X-Original-URL: /secret\r\nX-Rewrite-Url: /secret\r\nx_original_url: /secret\r\n");
  CHECK(verdict.kind == RequestVerdict::kPass);
  CHECK(verdict.request.fields.size() == 1);
}

TEST_CASE("What an older policy allowed is refused, and says that it changed") {
  Bench bench;
  CHECK(bench.Get("/a").kind == RequestVerdict::kPass);
  bench.ReplacePolicy();
  RequestVerdict verdict = bench.Get("/a");
  CHECK(verdict.kind == RequestVerdict::kRefuse);
  CHECK(Contains(AnswerOf(verdict), "because policy changed"));
}

TEST_CASE("In audit a refused request passes and is recorded as audited") {
  RequestVerdict verdict = Bench(false, 443, policy::Enforcement::kAudit)
                               .Judge("DELETE /x HTTP/1.1\r\nHost: api.example\r\n\r\n");
  CHECK(verdict.kind == RequestVerdict::kPass);
  CHECK(verdict.event.outcome == record::Event::Outcome::kAudited);
  CHECK(Contains(verdict.event.message, "L7_REQUEST audit DELETE api.example:443/x reason="));
}

TEST_CASE("The Host header and an absolute target must name the tunnel's authority") {
  auto refused = [](Bench bench, const std::string& target, const std::string& host) {
    RequestVerdict verdict =
        bench.Judge("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return Contains(AnswerOf(verdict), "request_authority_mismatch");
  };
  CHECK(refused(Bench(), "/", "evil.example"));
  CHECK(refused(Bench(), "/", "api.example:8443"));
  CHECK(refused(Bench(), "/", "api.example@evil"));
  CHECK(refused(Bench(), "https://evil.example/", "api.example"));
  CHECK(refused(Bench(), "http://api.example/", "api.example"));
  CHECK(refused(Bench(false, 8443), "/", "api.example"));
  CHECK_FALSE(refused(Bench(), "/", "API.EXAMPLE."));
  CHECK_FALSE(refused(Bench(), "/", "api.example:443"));
  CHECK_FALSE(refused(Bench(false, 8443), "/", "api.example:8443"));
  CHECK_FALSE(refused(Bench(), "https://api.example/", "api.example"));
  CHECK_FALSE(refused(Bench(), "/?next=http://evil.example", "api.example"));
}

TEST_CASE("What is malformed is closed in a tunnel and told to a proxy client") {
  for (const char* target :
       {"/a/../../x", "/a%00", "/a%2fb", "/a#b", "/?x=%2", "x", "*", "ftp:x"}) {
    INFO(target);
    CHECK(AnswerOf(Bench().Get(target)).empty());
    CHECK(Bench().Get(target).event.engine == record::Engine::kHttpParser);
    CHECK(Contains(AnswerOf(Bench(true).Get(target)), "invalid_request_target"));
  }
  const char* smuggled = "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n";
  CHECK(AnswerOf(Bench().Get("/", smuggled)).empty());
  CHECK(AnswerOf(JudgeMalformed(Bench().context(), "x")).empty());
}

TEST_CASE("A body's framing is written anew") {
  RequestVerdict verdict = Bench().Judge(
      "POST /post/x HTTP/1.1\r\nHost: api.example\r\nContent-Length: 007\r\n"
      "content-length: 7\r\nExpect: 100-continue\r\n\r\n");
  CHECK(verdict.kind == RequestVerdict::kPass);
  CHECK(FindField(verdict.request.fields, "content-length") == nullptr);
  CHECK(verdict.expects_continue);
  CHECK(FindField(verdict.request.fields, "expect") == nullptr);
}

TEST_CASE("An upgrade to WebSocket or HTTP/2 is refused by rest, others are dropped") {
  auto upgrade = [](const char* path) {
    return Bench().Get(path,
                       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n");
  };
  CHECK(AnswerOf(upgrade("/ws")).starts_with("HTTP/1.1 403 "));
  // Its clients ask over HTTP after this one.
  CHECK(AnswerOf(upgrade("/v1/responses")).starts_with("HTTP/1.1 426 "));
  RequestVerdict h2c = Bench().Get("/", "Connection: Upgrade\r\nUpgrade: h2c\r\n");
  CHECK(Contains(AnswerOf(h2c), "unsupported_l7_protocol"));
  RequestVerdict other = Bench().Get("/", "Connection: Upgrade\r\nUpgrade: irc\r\n");
  CHECK(other.kind == RequestVerdict::kPass);
  CHECK(FindField(other.request.fields, "upgrade") == nullptr);
  CHECK_FALSE(Bench().Get("/", "Upgrade: websocket\r\nSec-WebSocket-Key: a\r\n").websocket);
}

TEST_CASE("No WebSocket opens where only requests are judged, not even under audit") {
  constexpr const char* kUpgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n";
  for (policy::Enforcement enforcement :
       {policy::Enforcement::kEnforce, policy::Enforcement::kAudit}) {
    Bench bench(false, 443, enforcement);
    CHECK(bench.Get("/graphql?query=%7Bok%7D").kind == RequestVerdict::kPass);
    RequestVerdict verdict = bench.Get("/graphql?query=%7Bok%7D", kUpgrade);
    CHECK(verdict.kind == RequestVerdict::kRefuse);
    CHECK(verdict.event.reason ==
          "GET /graphql not permitted by policy: the messages of a WebSocket are not judged by "
          "graphql rules; an endpoint with 'protocol: websocket' for this path is needed");
    CHECK(verdict.event.protocol == "websocket");
    CHECK(Contains(AnswerOf(verdict), "\"type\":\"websocket_allow\""));
    verdict = bench.Get("/rest", kUpgrade);
    CHECK(verdict.kind == RequestVerdict::kRefuse);
    CHECK(Contains(verdict.event.reason, "are not judged by rest rules"));
    CHECK(verdict.event.protocol == "websocket");
    CHECK(Contains(AnswerOf(verdict), "\"type\":\"websocket_allow\""));
  }
}

TEST_CASE("A placeholder becomes the secret in what is sent and nothing in what is recorded") {
  std::string placeholder = PlaceholderFor("TOKEN");
  RequestVerdict verdict =
      Bench().Get("/bot" + placeholder, "Authorization: Bearer " + placeholder + "\r\n");
  REQUIRE(verdict.kind == RequestVerdict::kPass);
  CHECK(verdict.request.target == "/bots3cret");
  CHECK(FindField(verdict.request.fields, "authorization")->value == "Bearer s3cret");
  CHECK(verdict.event.path == "/bot[CREDENTIAL]");
  CHECK_FALSE(Contains(record::RenderOcsf(verdict.event, 0), "s3cret"));
}

TEST_CASE("A refused request is refused before its placeholders are looked at") {
  RequestVerdict verdict = Bench().Judge(
      "DELETE / HTTP/1.1\r\nHost: api.example\r\nX: openshell:resolve:env:NOBODY\r\n\r\n");
  CHECK(Contains(AnswerOf(verdict), "policy_denied"));
}

TEST_CASE("A forwarded request says who forwarded it and closes") {
  RequestVerdict verdict = Bench(true).Get("/x");
  REQUIRE(verdict.kind == RequestVerdict::kPass);
  CHECK(FindField(verdict.request.fields, "via")->value == "1.1 openshell-sandbox");
  CHECK(FindField(verdict.request.fields, "connection") == nullptr);
}

}  // namespace
}  // namespace gateway
