// SPDX-License-Identifier: Apache-2.0
#include "telemetry/signals.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/hex.h"

namespace telemetry {
namespace {

using codec::Json;

constexpr int64_t kStart = 1'764'500'000'000;

record::Event Request(record::Event::Outcome outcome) {
  record::Event event;
  event.kind = record::Event::Kind::kRequest;
  event.outcome = outcome;
  event.host = "pkg.example";
  event.port = 443;
  event.scheme = "https";
  event.method = "GET";
  event.path = "/a";
  event.policy = "own";
  event.reason = "no rule";
  return event;
}

record::Notice Inference() {
  record::Notice notice;
  notice.kind = record::Notice::Kind::kInference;
  notice.model = "claude-x";
  notice.provider = "https://api.anthropic.com/v1";
  notice.method = "POST";
  notice.path = "/messages";
  notice.duration_ms = 500;
  notice.counts = {{"input_tokens", 10},
                   {"output_tokens", 4},
                   {"cache_read_tokens", 3},
                   {"cache_write_tokens", 2},
                   {"http_status", 200}};
  return notice;
}

// A report of a run whose agent asked its model, called a tool twice, and was refused a host.
class Report {
 public:
  Report() {
    char name[] = "/tmp/telemetry_test_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    record_.started_at_ms = kStart;
    record_.finished_at_ms = kStart + 12'000;
    record_.phases_ms = {{"policy", 1000}, {"agent", 9000}, {"checks", 2000}};
    record_.agent.name = "claude-code";
    record_.outcome = {report::OutcomeKind::kSuccess, "", "", 0, 0};
    record_.event.repository = "acme/site";
    record_.event.number = 7;
    record_.checks = {
        {"make test", report::OutcomeKind::kAgentFailed, 1, "exit status 1", 1500, "checks/1", {}}};
    record_.limits = {{"tokens", 100.0, 19.0, "tokens", true}};
    record_.usage.cost_usd = 0.5;
    record_.usage.tool_calls = 2;
    record_.usage.input_tokens = 10;
    record_.usage.output_tokens = 4;
    record_.usage.cache_read_tokens = 3;
    record_.usage.cache_write_tokens = 2;
  }
  ~Report() { std::filesystem::remove_all(path_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + file).parent_path());
    REQUIRE(sys::WriteFile(path_ + "/" + file, text).ok());
  }
  void WriteAll() {
    Write("events.ocsf.jsonl",
          record::RenderOcsf(Request(record::Event::Outcome::kAllowed), kStart + 2000) + "\n" +
              record::RenderOcsf(Inference(), kStart + 3000) + "\n" +
              record::RenderOcsf(Request(record::Event::Outcome::kDenied), kStart + 5000) + "\n");
    Write("checks/1/events.ocsf.jsonl",
          record::RenderOcsf(Request(record::Event::Outcome::kDenied), kStart + 11'000) + "\n");
    Write("agent.jsonl",
          R"({"type":"system"}
{"type":"assistant","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"s3cret"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"0utput","is_error":true}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"b","name":"Read","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}
)");
  }
  FinishedRun run() const {
    return {record_,
            path_,
            {kStart + 1100, kStart + 3000, kStart + 4000, kStart + 6000, kStart + 7000}};
  }

  report::RunRecord record_;

 private:
  std::string path_;
};

Json Parse(const Message& message) {
  Result<Json> json = codec::ParseJson(message.Json());
  REQUIRE(json.ok());
  return std::move(json).value();
}

const Json& At(const Json& json, std::initializer_list<std::string_view> names) {
  const Json* at = &json;
  for (const std::string_view name : names) {
    at = at->Find(name);
    REQUIRE(at != nullptr);
    if (at->array() != nullptr && name != "spans" && name != "metrics" && name != "logRecords") {
      at = &at->array()->at(0);
    }
  }
  return *at;
}

// The attribute as text; "" if it is not there.
std::string Attribute(const Json& span, std::string_view key) {
  const Json* list = span.Find("attributes");
  if (list == nullptr) return {};
  for (const Json& one : *list->array()) {
    if (one.StringAt("key") != key) continue;
    const Json& value = one.Find("value")->object()->front().second;
    return value.string() != nullptr ? *value.string() : codec::RenderJsonLine(value);
  }
  return {};
}

struct Exports {
  RunMaterial material;
  OtlpSettings settings;
  TraceIds ids{std::string(16, 't'), 42};
  Exported exported() const { return {material, settings, ids}; }
};

TEST_CASE("Spans nest as run, phase, agent, turn, and what happened in it") {
  Report report;
  report.WriteAll();
  Exports exports{ReadMaterial(report.run()), {}};
  exports.settings.parent = {std::string(16, 't'), std::string(8, 'p'), 1, "k=v"};
  const Json traces = Parse(RenderTraces(exports.exported()));
  std::map<std::string, const Json*> by_id;
  std::map<std::string, const Json*> by_name;
  for (const Json& span : *At(traces, {"resourceSpans", "scopeSpans", "spans"}).array()) {
    CHECK(by_id.emplace(span.StringAt("spanId"), &span).second);
    by_name[span.StringAt("name")] = &span;
    CHECK(span.StringAt("traceId") == codec::EncodeHex(std::string(16, 't')));
    CHECK(span.StringAt("traceState") == "k=v");
  }
  const auto parent = [&](const std::string& name) {
    INFO(name);
    REQUIRE(by_name.contains(name));
    const auto found = by_id.find(by_name[name]->StringAt("parentSpanId"));
    return found == by_id.end() ? "" : found->second->StringAt("name");
  };
  CHECK(by_name["agentic-ci run"]->StringAt("parentSpanId") == "7070707070707070");
  CHECK(by_name["agentic-ci run"]->IntegerAt("flags") == 0x301);
  CHECK(parent("policy") == "agentic-ci run");
  CHECK(parent("invoke_agent claude-code") == "agentic-ci run");
  CHECK(parent("turn") == "invoke_agent claude-code");
  CHECK(parent("execute_tool Bash") == "turn");
  CHECK(parent("chat claude-x") == "turn");
  CHECK(parent("check") == "checks");
  CHECK(parent("GET") == "check");  // The last, which the check asked for.
  CHECK(by_id.size() == 13);
  CHECK(Attribute(*by_name["agentic-ci run"], "vcs.change.id") == "7");
  CHECK(Attribute(*by_name["chat claude-x"], "gen_ai.usage.input_tokens") == "15");
  CHECK(Attribute(*by_name["chat claude-x"], "gen_ai.provider.name") == "anthropic");
  CHECK(by_name["chat claude-x"]->StringAt("startTimeUnixNano") == "1764500002500000000");
  CHECK(by_name["execute_tool Bash"]->Find("status")->IntegerAt("code") == 2);
  CHECK(by_name["execute_tool Bash"]->StringAt("startTimeUnixNano") == "1764500003000000000");
  CHECK(by_name["execute_tool Bash"]->StringAt("endTimeUnixNano") == "1764500004000000000");
  CHECK(Attribute(*by_name["GET"], "agentic_ci.decision") == "denied");
  CHECK(Attribute(*by_name["GET"], "url.full") == "https://pkg.example:443/a");
}

TEST_CASE("What tools were given and gave is exported only where it is asked for") {
  Report report;
  report.WriteAll();
  Exports exports{ReadMaterial(report.run()), {}};
  for (const auto render : {RenderTraces, RenderMetrics, RenderLogs}) {
    const std::string text = render(exports.exported()).Json();
    CHECK(text.find("s3cret") == std::string::npos);
    CHECK(text.find("0utput") == std::string::npos);
  }
  exports.settings.contents = true;
  const std::string text = RenderTraces(exports.exported()).Json();
  CHECK(text.find("s3cret") != std::string::npos);
  CHECK(text.find("0utput") != std::string::npos);
}

TEST_CASE("Without times of the agent's lines, there are no turns, and nothing else is missing") {
  Report report;
  report.WriteAll();
  FinishedRun run = report.run();
  run.line_times_ms.clear();
  const RunMaterial material = ReadMaterial(run);
  CHECK(material.turns.empty());
  CHECK(material.tools.empty());
  CHECK(material.events.size() == 4);
}

TEST_CASE("Logs are the records as they are, with the span that each is about") {
  Report report;
  report.WriteAll();
  Exports exports{ReadMaterial(report.run()), {}};
  const Json logs = Parse(RenderLogs(exports.exported()));
  const Json::Array& all = *At(logs, {"resourceLogs", "scopeLogs", "logRecords"}).array();
  REQUIRE(all.size() == 4);
  CHECK(all[2].Find("body")->StringAt("stringValue") ==
        record::RenderOcsf(Request(record::Event::Outcome::kDenied), kStart + 5000));
  CHECK(all[2].IntegerAt("severityNumber") == 13);
  CHECK(all[2].StringAt("eventName") == "ocsf.http_activity");
  CHECK(all[2].StringAt("timeUnixNano") == "1764500005000000000");
  const std::string traces = RenderTraces(exports.exported()).Json();
  CHECK(traces.find("\"spanId\":\"" + all[2].StringAt("spanId") + "\"") != std::string::npos);
}

TEST_CASE("Metrics have the run's figures") {
  Report report;
  report.WriteAll();
  Exports exports{ReadMaterial(report.run()), {}};
  const auto metric = [&](const std::string& name) {
    const Json metrics = Parse(RenderMetrics(exports.exported()));
    for (const Json& one : *At(metrics, {"resourceMetrics", "scopeMetrics", "metrics"}).array()) {
      if (one.StringAt("name") == name) return one;
    }
    FAIL(name);
    return Json();
  };
  CHECK(*At(metric("agentic_ci.run.duration"), {"histogram", "dataPoints"}).Find("sum")->number() ==
        12.0);
  CHECK(*At(metric("agentic_ci.run.cost"), {"sum", "dataPoints"}).Find("asDouble")->number() ==
        0.5);
  CHECK(At(metric("agentic_ci.run.tokens"), {"sum", "dataPoints"}).StringAt("asInt") == "19");
  const Json input = metric("gen_ai.client.inference.usage.input_tokens");
  CHECK(At(input, {"sum", "dataPoints"}).StringAt("asInt") == "15");
  CHECK(input.Find("sum")->IntegerAt("aggregationTemporality") == 2);
  CHECK(metric("agentic_ci.requests").Find("sum")->Find("dataPoints")->array()->size() == 2);
  const Json duration = metric("gen_ai.client.inference.duration");
  const Json& point = At(duration, {"histogram", "dataPoints"});
  CHECK(point.Find("bucketCounts")->array()->size() ==
        point.Find("explicitBounds")->array()->size() + 1);
  CHECK(*point.Find("bucketCounts")->array()->at(6).string() == "1");  // 0.32 to 0.64 s.
  CHECK(At(metric("agentic_ci.limit.reached"), {"sum", "dataPoints"}).StringAt("asInt") == "1");
  exports.settings.delta = true;
  CHECK(metric("agentic_ci.run.cost").Find("sum")->IntegerAt("aggregationTemporality") == 1);
}

TEST_CASE("A flood of allowed requests does not displace what was refused, and is counted") {
  Report report;
  std::string events;
  const std::string allowed =
      record::RenderOcsf(Request(record::Event::Outcome::kAllowed), kStart + 2000) + "\n";
  for (int i = 0; i < 100; ++i) events += allowed;
  for (int i = 0; i < 10; ++i) {
    events += record::RenderOcsf(Request(record::Event::Outcome::kDenied), kStart + 3000) + "\n";
  }
  report.Write("events.ocsf.jsonl", events + "not a record\n");
  const RunMaterial material = ReadMaterial(report.run(), {.events_max = 20});
  CHECK(material.events.size() == 20);
  CHECK(material.events.back().decision == "denied");
  CHECK(material.dropped == 100 - 10 + 1);
}

TEST_CASE("A run that did not start has its span and figures") {
  report::RunRecord record;
  record.outcome = {report::OutcomeKind::kSetupFailed, "", "no policy", 65, std::nullopt};
  Exports exports{ReadMaterial({record, "", {}}), {}};
  const Json traces = Parse(RenderTraces(exports.exported()));
  const Json& span = At(traces, {"resourceSpans", "scopeSpans", "spans"}).array()->at(0);
  CHECK(Attribute(span, "cicd.pipeline.task.run.result") == "error");
  CHECK(Attribute(span, "error.type") == "setup-failed");
  CHECK(span.Find("status")->StringAt("message") == "no policy");
  CHECK_FALSE(RenderMetrics(exports.exported()).empty());
}

TEST_CASE("A model's provider is known by its host, or by the form of its API") {
  for (const auto& [provider, path, expected] : std::vector<std::array<std::string, 3>>{
           {"https://api.openai.com/v1", "/responses", "openai"},
           {"https://x.openai.azure.com", "/", "azure.ai.openai"},
           {"https://bedrock-runtime.eu-west-1.amazonaws.com", "/", "aws.bedrock"},
           {"https://us-east5-aiplatform.googleapis.com", "/", "gcp.vertex_ai"},
           {"https://notopenai.com:8443/v1", "/x", "notopenai.com"},
           {"http://gateway:4000", "/v1/messages", "anthropic"},
           {"", "", ""}}) {
    CHECK(ProviderOf(provider, path) == expected);
  }
  CHECK(OperationOf("/v1/messages") == "chat");
  CHECK(OperationOf("/v1/chat/completions") == "chat");
  CHECK(OperationOf("/v1/completions") == "text_completion");
  CHECK(OperationOf("/v1beta/models/g:streamGenerateContent") == "generate_content");
}

TEST_CASE("The ids of a run's spans are all different") {
  const TraceIds ids(std::string(16, 't'), 1);
  std::set<std::string> seen;
  for (const TraceIds::Of of : {TraceIds::Of::kRun, TraceIds::Of::kEvent, TraceIds::Of::kTool}) {
    for (size_t i = 0; i < 5000; ++i) seen.insert(ids.SpanId(of, i));
  }
  CHECK(seen.size() == 15'000);
}

}  // namespace
}  // namespace telemetry
