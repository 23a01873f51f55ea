// SPDX-License-Identifier: Apache-2.0
#include "record/ocsf.h"

#include <catch2/catch.hpp>

#include "codec/data/json.h"
#include "record/shorthand.h"

namespace record {
namespace {

using Outcome = Event::Outcome;

Event Connection(Outcome outcome, std::string binary, int64_t pid, std::string host,
                 uint16_t port) {
  Event event;
  event.outcome = outcome;
  event.binary = std::move(binary);
  event.pid = pid;
  event.host = std::move(host);
  event.port = port;
  return event;
}

Event Request(Outcome outcome, std::string method, std::string scheme, std::string host,
              uint16_t port, std::string path) {
  Event event = Connection(outcome, "curl", 88, std::move(host), port);
  event.kind = Event::Kind::kRequest;
  event.method = std::move(method);
  event.scheme = std::move(scheme);
  event.path = std::move(path);
  event.policy = "default-egress";
  SetEngine("mechanistic", &event);
  return event;
}

// The lines are OpenShell's own examples.
TEST_CASE("A captured connection that was allowed shows its message") {
  Event event;
  event.outcome = Event::Outcome::kAllowed;
  event.host = "db.example.com";
  event.port = 5432;
  event.policy = "db";
  SetEngine("opa", &event);
  event.message = "TCP allowed db.example.com:5432";
  CHECK(RenderShorthand(event) ==
        "NET:OPEN [INFO] ALLOWED db.example.com:5432 [policy:db engine:opa]");
  event.reason = kTransparentAllowed;
  CHECK(RenderShorthand(event) ==
        "NET:OPEN [INFO] ALLOWED db.example.com:5432 [policy:db engine:opa] "
        "[msg:TCP allowed db.example.com:5432]");
}

TEST_CASE("An allowed connection is rendered as OpenShell renders it") {
  Event event = Connection(Outcome::kAllowed, "python3", 42, "api.example.com", 443);
  event.policy = "default-egress";
  SetEngine("mechanistic", &event);
  CHECK(RenderShorthand(event) ==
        "NET:OPEN [INFO] ALLOWED python3(42) -> api.example.com:443 [policy:default-egress "
        "engine:mechanistic]");
}

TEST_CASE("A refused connection is rendered as OpenShell renders it") {
  Event event = Connection(Outcome::kDenied, "node", 1234, "93.184.216.34", 443);
  event.transport = "tcp";
  event.policy = "bypass-detect";
  SetEngine("nftables", &event);
  CHECK(RenderShorthand(event) ==
        "NET:REFUSE [MED] DENIED node(1234) -> 93.184.216.34:443/tcp [policy:bypass-detect "
        "engine:nftables]");
}

TEST_CASE("A message is shown where there is nothing else") {
  Event event;
  event.message = "relay open (channel_id=ch-42)";
  CHECK(RenderShorthand(event) == "NET:OPEN [INFO] [msg:relay open (channel_id=ch-42)]");
}

TEST_CASE("Requests are rendered as OpenShell renders them") {
  CHECK(RenderShorthand(
            Request(Outcome::kAllowed, "GET", "https", "api.example.com", 443, "/v1/data")) ==
        "HTTP:GET [INFO] ALLOWED curl(88) -> GET https://api.example.com/v1/data "
        "[policy:default-egress engine:mechanistic]");
  Event event = Request(Outcome::kAllowed, "GET", "http", "172.20.0.1", 9876, "/test");
  event.pid = 68;
  event.policy = "allow_host_9876";
  CHECK(RenderShorthand(event) ==
        "HTTP:GET [INFO] ALLOWED curl(68) -> GET http://172.20.0.1:9876/test "
        "[policy:allow_host_9876 engine:mechanistic]");
}

TEST_CASE("A request without a known process shows its further facts") {
  Event event = Request(Outcome::kAllowed, "POST", "http", "httpbin.org", 443, "/anything");
  event.binary.clear();
  event.policy = "httpbin";
  SetEngine("extension", &event);
  event.context = {{"attempt", "2"}, {"cached", "true"}};
  CHECK(RenderShorthand(event) ==
        "HTTP:POST [INFO] ALLOWED POST http://httpbin.org:443/anything [policy:httpbin "
        "engine:extension] [attempt:2 cached:true]");
}

TEST_CASE("A URL shows its port only where the scheme does not imply it") {
  CHECK(RenderShorthand(Request(Outcome::kAllowed, "GET", "http", "h", 443, "/"))
            .find("http://h:443/") != std::string::npos);
  CHECK(RenderShorthand(Request(Outcome::kAllowed, "GET", "https", "h", 443, "/"))
            .find("https://h/") != std::string::npos);
  CHECK(
      RenderShorthand(Request(Outcome::kAllowed, "GET", "http", "h", 80, "/")).find("http://h/") !=
      std::string::npos);
  CHECK(RenderShorthand(Request(Outcome::kAllowed, "GET", "https", "::1", 8443, "/"))
            .find("https://[::1]:8443/") != std::string::npos);
}

TEST_CASE("Only a denial shows its reason") {
  Event event = Request(Outcome::kDenied, "DELETE", "https", "h", 443, "/x");
  event.reason = "DELETE /x not permitted by policy";
  CHECK(RenderShorthand(event) ==
        "HTTP:DELETE [MED] DENIED curl(88) -> DELETE https://h/x [policy:default-egress "
        "engine:mechanistic] [reason:DELETE /x not permitted by policy]");
  event.outcome = Outcome::kAudited;
  CHECK(RenderShorthand(event).find("reason") == std::string::npos);
  CHECK(RenderShorthand(event).find("[INFO] ALLOWED") != std::string::npos);
}

TEST_CASE("An allowed call of MCP shows its message, and a denied one its reason") {
  Event event = Request(Outcome::kAllowed, "POST", "https", "h", 443, "/mcp");
  SetEngine("l7-mcp", &event);
  event.message = "JSONRPC_L7_REQUEST decision=allow rule_methods=tools/call tools=read";
  const std::string line = "curl(88) -> POST https://h/mcp [policy:default-egress engine:l7-mcp] ";
  CHECK(RenderShorthand(event) ==
        "HTTP:POST [INFO] ALLOWED " + line + "[msg:" + event.message + "]");
  event.outcome = Outcome::kDenied;
  CHECK(RenderShorthand(event) ==
        "HTTP:POST [MED] DENIED " + line + "[reason:" + event.message + "]");
  event.reason = "no";
  CHECK(RenderShorthand(event) == "HTTP:POST [MED] DENIED " + line + "[reason:no]");
  SetEngine("l7-jsonrpc", &event);
  event.outcome = Outcome::kAllowed;
  CHECK(RenderShorthand(event).find("[msg:") == std::string::npos);
}

TEST_CASE("A reason is one line of at most 256 bytes, cut between characters") {
  Event event = Connection(Outcome::kDenied, "x", 1, "h", 1);
  event.reason = "a\r\nb\x1b[31m";
  CHECK(RenderShorthand(event).find("[reason:a  b\\u{1b}[31m]") != std::string::npos);
  event.reason = std::string(255, 'a') + "\xc3\xa9 and more";
  CHECK(RenderShorthand(event).find("[reason:" + std::string(255, 'a') + "...]") !=
        std::string::npos);
}

TEST_CASE("A program's name cannot forge a line or a word of it") {
  Event event = Connection(Outcome::kDenied, "/tmp/x\n2026 OCSF NET:OPEN ALLOWED y", 7, "h", 1);
  std::string line = RenderShorthand(event);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(line.find("/tmp/x\\u{a}2026\\u{20}OCSF") != std::string::npos);
  CHECK(RenderOcsf(event, 0).find('\n') == std::string::npos);
}

TEST_CASE("What is not UTF-8 becomes UTF-8 in both forms") {
  Event event = Connection(Outcome::kDenied, "/tmp/\xff\xfe", 7, "h", 1);
  CHECK(RenderShorthand(event).find("\xff") == std::string::npos);
  CHECK(codec::ParseJson(RenderOcsf(event, 0)).ok());
}

TEST_CASE("A long path is cut in both forms") {
  Event event = Request(Outcome::kAllowed, "GET", "https", "h", 443, "/" + std::string(4000, 'a'));
  CHECK(RenderShorthand(event).size() < 1200);
  CHECK(RenderOcsf(event, 0).size() < 4096);
}

TEST_CASE("A failure upstream is no denial") {
  Event event = Connection(Outcome::kFailed, "curl", 5, "h", 443);
  event.policy = "p";
  SetEngine("upstream", &event);
  event.reason = "connect: Connection refused";
  CHECK(RenderShorthand(event) == "NET:FAIL [LOW] curl(5) -> h:443 [policy:p engine:upstream]");
  codec::Json json = codec::ParseJson(RenderOcsf(event, 0)).value();
  CHECK(json.Find("action") == nullptr);
  CHECK(json.IntegerAt("type_uid") == 400104);
  CHECK(json.Find("unmapped")->StringAt("decision") == "failed");
}

TEST_CASE("The JSON of a denied request holds what a policy line needs") {
  Event event = Request(Outcome::kDenied, "DELETE", "https", "h.example", 8443, "/x");
  event.reason = "why";
  event.message = "L7_REQUEST deny";
  event.position = "policy.yml:3:5";
  event.ancestors = {"/bin/sh"};
  codec::Json json = codec::ParseJson(RenderOcsf(event, 1234)).value();
  CHECK(json.IntegerAt("class_uid") == 4002);
  CHECK(json.IntegerAt("activity_id") == 2);
  CHECK(json.IntegerAt("type_uid") == 400202);
  CHECK(json.IntegerAt("time") == 1234);
  CHECK(json.IntegerAt("severity_id") == 3);
  CHECK(json.StringAt("status_detail") == "why");
  CHECK(json.StringAt("disposition") == "Blocked");
  CHECK(json.Find("metadata")->StringAt("version") == "1.9.0");
  const codec::Json* unmapped = json.Find("unmapped");
  REQUIRE(unmapped != nullptr);
  CHECK(unmapped->StringAt("decision") == "denied");
  CHECK(unmapped->StringAt("host") == "h.example");
  CHECK(unmapped->IntegerAt("port") == 8443);
  CHECK(unmapped->StringAt("method") == "DELETE");
  CHECK(unmapped->StringAt("path") == "/x");
  CHECK(unmapped->StringAt("binary") == "curl");
  CHECK(unmapped->StringAt("position") == "policy.yml:3:5");
  CHECK(unmapped->Find("deny_rule") == nullptr);
  event.by_deny_rule = true;
  json = codec::ParseJson(RenderOcsf(event, 1234)).value();
  CHECK(json.Find("unmapped")->StringAt("deny_rule") == "policy.yml:3:5");
  CHECK(json.Find("http_request")->StringAt("http_method") == "DELETE");
  CHECK(json.Find("dst_endpoint")->StringAt("domain") == "h.example");
}

TEST_CASE("What a request carried is in the JSON, and not in the line for people") {
  Event event = Request(Outcome::kDenied, "POST", "https", "h.example", 443, "/x");
  const std::string line = RenderShorthand(event);
  event.protocol = "mcp";
  event.operations = {{"", "", {}, "", "tools/call", "a\"}\n\xff"},
                      {"mutation", "N", {"a", "b"}, "", "", ""},
                      {"", "", {}, "3f2a", "", ""}};
  CHECK(RenderShorthand(event) == line);
  const std::string rendered = RenderOcsf(event, 1);
  CHECK(rendered.find('\n') == std::string::npos);
  const codec::Json json = codec::ParseJson(rendered).value();
  const codec::Json* unmapped = json.Find("unmapped");
  CHECK(unmapped->StringAt("protocol") == "mcp");
  CHECK(codec::RenderJsonLine(*unmapped->Find("operations")) ==
        "[{\"method\":\"tools/call\",\"tool\":\"a\\\"}\\n\xef\xbf\xbd\"},{\"operation_type\":"
        "\"mutation\",\"operation_name\":\"N\",\"fields\":[\"a\",\"b\"]},{\"persisted_query\":"
        "\"3f2a\"}]");
}

TEST_CASE("The JSON begins with OCSF's base in its order") {
  std::string json = RenderOcsf(Connection(Outcome::kAllowed, "x", 1, "10.0.0.1", 443), 5);
  CHECK(json.rfind("{\"class_uid\":4001,\"class_name\":\"Network Activity\",\"category_uid\":4,"
                   "\"category_name\":\"Network Activity\",\"activity_id\":1,\"activity_name\":"
                   "\"Open\",\"type_uid\":400101,",
                   0) == 0);
  CHECK(json.find("\"ip\":\"10.0.0.1\"") != std::string::npos);
}

TEST_CASE("What is rendered is parsed back, as far as its readers need it") {
  Event event = Request(Outcome::kAudited, "POST", "https", "h.example", 443, "/x");
  event.engine = Engine::kL7Mcp;
  event.reason = "POST /x not permitted by policy";
  event.position = "p.yml:3:5";
  event.by_deny_rule = true;
  event.ancestors = {"/bin/sh"};
  event.protocol = "mcp";
  event.operations = {{"", "", {}, "", "tools/call", "x"}, {"mutation", "N", {"a"}, "", "", ""}};
  for (Outcome outcome :
       {Outcome::kNone, Outcome::kAllowed, Outcome::kAudited, Outcome::kDenied, Outcome::kFailed}) {
    event.outcome = outcome;
    const std::string line = RenderOcsf(event, 1);
    const Event parsed = std::get<Event>(ParseOcsf(line).value());
    CHECK(parsed.outcome == outcome);
    CHECK(parsed.kind == event.kind);
    CHECK(parsed.host == event.host);
    CHECK(parsed.port == event.port);
    CHECK(parsed.method == event.method);
    CHECK(parsed.path == event.path);
    CHECK(parsed.engine == event.engine);
    CHECK(parsed.reason == event.reason);
    CHECK(parsed.position == event.position);
    CHECK(parsed.by_deny_rule);
    CHECK(parsed.ancestors == event.ancestors);
    CHECK(parsed.protocol == event.protocol);
    CHECK(parsed.operations == event.operations);
    CHECK(parsed.transport == "tcp");
    CHECK_FALSE(MayBeNotice(line));
    const bool passes = outcome == Outcome::kAllowed || outcome == Outcome::kAudited;
    CHECK(FindAllowed(line).has_value() == passes);
  }
  event.outcome = Outcome::kDenied;
  event.count = 3;
  const Event kept = std::get<Event>(ParseOcsf(RenderDenial(event)).value());
  CHECK(kept.outcome == Outcome::kDenied);
  CHECK(kept.kind == Event::Kind::kRequest);
  CHECK(kept.count == 3);
  CHECK(kept.operations == event.operations);
}

TEST_CASE("Each engine has a name, and another program's keeps its own") {
  Event event;
  for (int engine = 0; engine < static_cast<int>(Engine::kOther); ++engine) {
    event.engine = static_cast<Engine>(engine);
    const std::string name(EngineName(event));
    Event read;
    SetEngine(name, &read);
    CHECK(read.engine == event.engine);
    CHECK(name.empty() == (event.engine == Engine::kNone));
  }
  SetEngine("mechanistic", &event);
  CHECK(event.engine == Engine::kOther);
  CHECK(EngineName(event) == "mechanistic");
  CHECK_FALSE(IsByPolicy(event));
}

TEST_CASE("A notice is parsed back with its subject and its facts") {
  Notice notice;
  notice.kind = Notice::Kind::kInference;
  notice.succeeded = false;
  notice.model = "m-1";
  notice.provider = "https://api.example/v1";
  notice.context = {{"why", "x"}};
  notice.counts = {{"input_tokens", 7}};
  const std::string line = RenderOcsf(notice, 1);
  CHECK(MayBeNotice(line));
  Notice parsed = std::get<Notice>(ParseOcsf(line).value());
  CHECK(parsed.kind == notice.kind);
  CHECK_FALSE(parsed.succeeded);
  CHECK(parsed.model == "m-1");
  CHECK(parsed.provider == notice.provider);
  CHECK(parsed.ContextAt("why") == "x");
  CHECK(parsed.ContextAt("other").empty());
  CHECK(parsed.CountAt("input_tokens") == 7);
  CHECK_FALSE(parsed.CountAt("other").has_value());
  notice.kind = Notice::Kind::kFinding;
  notice.succeeded = true;
  notice.type = "budget.cost";
  notice.title = "80 %";
  parsed = std::get<Notice>(ParseOcsf(RenderOcsf(notice, 1)).value());
  CHECK(parsed.succeeded);
  CHECK(parsed.type == "budget.cost");
  CHECK(parsed.title == "80 %");
  for (Notice::Kind kind : {Notice::Kind::kConfig, Notice::Kind::kLifecycle}) {
    notice.kind = kind;
    CHECK(std::get<Notice>(ParseOcsf(RenderOcsf(notice, 1)).value()).kind == kind);
  }
}

TEST_CASE("What is not a record of this program is told apart from what is not a record") {
  for (const char* text : {"", "x", "[]", "7", "{\"class_uid\":4001", "{\"a\":1,\"a\":2}"}) {
    CHECK_FALSE(ParseOcsf(text).has_value());
  }
  for (const char* text : {"{}", "{\"class_uid\":4003,\"action_id\":2}", "{\"class_uid\":2004}"}) {
    const std::optional<Record> other = ParseOcsf(text);
    REQUIRE(other.has_value());
    CHECK(std::holds_alternative<std::monostate>(*other));
  }
  // What contradicts itself has no outcome.
  const std::string odd = R"({"class_uid":4001,"action_id":1,"unmapped":{"decision":"denied"}})";
  CHECK(std::get<Event>(ParseOcsf(odd).value()).outcome == Outcome::kNone);
}

// OpenShell's examples, as far as this gateway has such records.
TEST_CASE("What is about no connection is rendered as OpenShell renders it") {
  Notice notice;
  notice.kind = Notice::Kind::kFinding;
  notice.activity = "BLOCKED";
  notice.severity = Notice::Severity::kHigh;
  notice.title = "NSSH1 \"Nonce\" Replay\tAttack\n\\";
  notice.type = "nssh1-replay-abc";
  notice.context = {{"confidence", "high"}};
  CHECK(RenderShorthand(notice) ==
        "FINDING:BLOCKED [HIGH] \"NSSH1 \\\"Nonce\\\" Replay\\tAttack\\n\\\\\" "
        "[type:nssh1-replay-abc confidence:high]");
  notice.activity = "CREATE";
  notice.severity = Notice::Severity::kInfo;
  notice.title = "configured content matched";
  notice.type = "content_guard.match";
  notice.context.clear();
  notice.counts = {{"count", 1}};
  CHECK(RenderShorthand(notice) ==
        "FINDING:CREATE [INFO] \"configured content matched\" [type:content_guard.match count:1]");
  notice = {};
  notice.kind = Notice::Kind::kConfig;
  notice.activity = "LOADED";
  notice.title = "policy reloaded";
  notice.context = {{"version", "v3"}, {"hash", "sha256:abc123def456"}};
  CHECK(RenderShorthand(notice) ==
        "CONFIG:LOADED [INFO] policy reloaded [version:v3 hash:sha256:abc123def456]");
  notice = {};
  notice.kind = Notice::Kind::kLifecycle;
  notice.activity = "START";
  notice.title = "openshell-sandbox";
  CHECK(RenderShorthand(notice) == "LIFECYCLE:START [INFO] openshell-sandbox success");
  notice = {};
  notice.kind = Notice::Kind::kInference;
  notice.model = "claude-haiku-4-5-20251001";
  notice.provider = "https://api.anthropic.com/v1";
  notice.method = "POST";
  notice.path = "/v1/messages";
  notice.duration_ms = 701;
  CHECK(RenderShorthand(notice) ==
        "API:INFERENCE [INFO] Success claude-haiku-4-5-20251001 via https://api.anthropic.com/v1 "
        "701ms [POST /v1/messages]");
}

TEST_CASE("A record names its sandbox") {
  std::string json = RenderOcsf(Notice::Seen("budget.tokens", "half is used"), 0);
  AddMember(RenderSandbox("a\"b"), json);
  const codec::Json parsed = codec::ParseJson(json).value();
  CHECK(parsed.Find("device")->Find("container")->StringAt("uid") == "a\"b");
  CHECK(parsed.Find("finding_info")->StringAt("uid") == "budget.tokens");
}

TEST_CASE("Times are UTC with milliseconds") {
  CHECK(RenderTime(0) == "1970-01-01T00:00:00.000Z");
  CHECK(RenderTime(1787306400123) == "2026-08-21T10:00:00.123Z");
}

}  // namespace
}  // namespace record
