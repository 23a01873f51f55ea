// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "codec/text/neutral.h"
#include "record/event.h"
#include "telemetry/attributes.h"
#include "telemetry/names.h"
#include "telemetry/otlp/messages.h"
#include "telemetry/signals.h"

namespace telemetry {
namespace {

using record::Event;
using record::Notice;

constexpr uint64_t kInternal = 1;  // Span.SpanKind.
constexpr uint64_t kClient = 3;
constexpr uint64_t kStatusOk = 1;  // Status.StatusCode.
constexpr uint64_t kStatusError = 2;
// SpanFlags: sampled, whether the parent is remote is known, and it is.
constexpr uint64_t kSampled = 0x1;
constexpr uint64_t kRemoteKnown = 0x100;
constexpr uint64_t kRemote = 0x200;
constexpr size_t kNameBytesMax = 200;

struct Span {
  std::string id;
  std::string parent;
  std::string name;
  int64_t start_ms = 0;
  int64_t end_ms = 0;
  uint64_t kind = kInternal;
  uint64_t status = 0;
  std::string status_message = {};
  Attributes attributes = {};

  void Fail(std::string_view type, std::string_view why = {}) {
    status = kStatusError;
    status_message = codec::CutUtf8(codec::ValidUtf8(why), Attributes::kTextBytesMax);
    attributes.Text(name::kErrorType, type);
  }
};

// "/usr/bin/git" -> "git"
std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class Trace {
 public:
  explicit Trace(const Exported& exported)
      : run_(exported.run), settings_(exported.settings), ids_(exported.ids) {
    const PhaseTime* agent = run_.FindPhase("agent");
    top_ = agent != nullptr ? ids_.SpanId(Of::kAgent) : ids_.SpanId(Of::kRun);
  }

  Message Render() {
    AddRun();
    for (size_t i = 0; i < run_.phases.size(); ++i) AddPhase(run_.phases[i], i);
    AddChecks();
    AddTurns();
    for (size_t i = 0; i < run_.tools.size(); ++i) AddTool(run_.tools[i], i);
    for (size_t i = 0; i < run_.events.size(); ++i) AddEvent(run_.events[i], i);
    for (size_t i = 0; i < run_.programs.size(); ++i) AddProgram(run_.programs[i], i);
    return std::move(spans_);
  }

 private:
  using Of = TraceIds::Of;

  void Add(const Span& span, uint64_t flags = 0) {
    Message message;
    message.Text(otlp::kTraceId, ids_.trace_id()).Text(otlp::kSpanId, span.id);
    const std::string& state = settings_.parent.state;
    if (!state.empty()) message.Text(otlp::kTraceState, state);
    if (!span.parent.empty()) message.Text(otlp::kParentSpanId, span.parent);
    message.Text(otlp::kSpanName, codec::CutUtf8(codec::ValidUtf8(span.name), kNameBytesMax));
    message.Number(otlp::kSpanKind, span.kind);
    const int64_t start = std::max<int64_t>(span.start_ms, 0);
    message.Number(otlp::kSpanStart, static_cast<uint64_t>(start) * kNanosPerMilli);
    const int64_t end = std::max(start, span.end_ms);
    message.Number(otlp::kSpanEnd, static_cast<uint64_t>(end) * kNanosPerMilli);
    span.attributes.AppendTo(otlp::kSpanAttributes, &message);
    if (span.status != 0) {
      Message status;
      if (!span.status_message.empty()) status.Text(otlp::kStatusMessage, span.status_message);
      status.Number(otlp::kStatusCode, span.status);
      message.Child(otlp::kSpanStatus, std::move(status));
    }
    message.Number(otlp::kSpanFlags, kSampled | kRemoteKnown | flags);
    spans_.Child(otlp::kSpans, std::move(message));
  }

  // The run is a task of the job's pipeline.
  void AddRun() {
    const report::RunRecord& record = run_.record;
    const report::EventRecord& event = record.event;
    Span span{ids_.SpanId(Of::kRun), settings_.parent.span_id, "agentic-ci run",
              record.started_at_ms, record.finished_at_ms};
    Attributes& facts = span.attributes;
    for (const auto& [key, value] : settings_.pipeline) {
      if (key == name::kTaskName) span.name = value;
    }
    if (span.name.empty()) span.name = "agentic-ci run";
    const std::string outcome = report::Render(record.outcome.kind);
    facts.Text(name::kTaskName, span.name).Text(name::kTaskRunId, record.isolation.uid);
    facts.Text(name::kTaskRunResult, ResultOf(record.outcome.kind));
    facts.Texts(settings_.execution);
    if (!facts.Has(name::kTaskRunUrl)) facts.Text(name::kTaskRunUrl, event.run_url);
    const std::string change = event.number > 0 ? std::to_string(event.number) : "";
    facts.Text(name::kVcsChange, change);
    facts.Text(name::kVcsBaseName, event.base_ref).Text(name::kVcsBaseRevision, event.base_sha);
    facts.Text(name::kVcsHeadName, event.head_ref).Text(name::kVcsHeadRevision, event.head_sha);
    facts.Text(name::kOutcome, outcome).Integer(name::kExitCode, record.outcome.exit_code);
    facts.Text(name::kTrust, record.trust.level).Text(name::kTier, record.isolation.tier);
    facts.Text(name::kPolicyDigest, record.policy.sha256);
    facts.Text(name::kImageDigest, record.image.digest).Text(name::kTask, record.agent.task);
    if (record.usage.cost_usd) facts.Real(name::kCost, *record.usage.cost_usd);
    if (run_.dropped > 0) facts.Integer(name::kDropped, run_.dropped);
    span.status = kStatusOk;
    const std::string_view result = ResultOf(record.outcome.kind);
    if (result != "success" && result != "skip") span.Fail(outcome, record.outcome.reason);
    Add(span, settings_.parent.span_id.empty() ? 0 : kRemote);
  }

  void AddPhase(const PhaseTime& phase, size_t index) {
    if (phase.name == "agent") return AddAgent(phase);
    Span span{ids_.SpanId(Of::kPhase, index), ids_.SpanId(Of::kRun), phase.name, phase.start_ms,
              phase.end_ms};
    span.attributes.Text(name::kPhase, phase.name);
    Add(span);
  }

  void AddAgent(const PhaseTime& phase) {
    const report::RunRecord& record = run_.record;
    Span span{ids_.SpanId(Of::kAgent), ids_.SpanId(Of::kRun), "invoke_agent " + record.agent.name,
              phase.start_ms, phase.end_ms};
    span.attributes.Text(name::kOperation, "invoke_agent");
    span.attributes.Text(name::kAgentName, record.agent.name);
    span.attributes.Text(name::kAgentVersion, record.agent.version);
    span.attributes.Text(name::kPhase, phase.name);
    span.attributes.Text(name::kResponseModel, record.usage.model);
    if (record.outcome.agent_status.value_or(0) != 0) {
      span.Fail("exit_status", "exit status " + std::to_string(*record.outcome.agent_status));
    }
    Add(span);
  }

  // The checks ran one after the other.
  void AddChecks() {
    const PhaseTime* phase = run_.FindPhase("checks");
    if (phase == nullptr) return;
    int64_t at = phase->start_ms;
    const auto index = static_cast<size_t>(phase - run_.phases.data());
    for (size_t i = 0; i < run_.record.checks.size(); ++i) {
      const report::CheckRecord& check = run_.record.checks[i];
      Span span{ids_.SpanId(Of::kCheck, i), ids_.SpanId(Of::kPhase, index), "check", at,
                at + check.ms};
      span.attributes.Text(name::kCheck, check.command);
      if (check.outcome != report::OutcomeKind::kSuccess) {
        span.Fail(report::Render(check.outcome), check.reason);
      }
      at += check.ms;
      Add(span);
    }
  }

  void AddTurns() {
    for (size_t i = 0; i < run_.turns.size(); ++i) {
      Span span{ids_.SpanId(Of::kTurn, i), top_, "turn", run_.turns[i].start_ms,
                run_.turns[i].end_ms};
      span.attributes.Integer(name::kTurn, static_cast<int64_t>(i) + 1);
      Add(span);
    }
  }

  void AddTool(const ToolCall& tool, size_t index) {
    Span span{ids_.SpanId(Of::kTool, index), ids_.SpanId(Of::kTurn, tool.turn),
              "execute_tool " + tool.name, tool.start_ms, tool.end_ms};
    span.attributes.Text(name::kOperation, "execute_tool").Text(name::kToolName, tool.name);
    if (tool.nested) span.attributes.Boolean(name::kNested, true);
    if (settings_.contents) {
      span.attributes.Text(name::kToolArguments, tool.arguments, Attributes::kContentBytesMax);
      span.attributes.Text(name::kToolResult, tool.result, Attributes::kContentBytesMax);
    }
    if (tool.failed) span.Fail("tool_error");
    Add(span);
  }

  // Returns what was going on at a time: a check, a turn, the agent, or the run.
  std::string ParentAt(int64_t time_ms, size_t check = 0) const {
    if (check > 0) return ids_.SpanId(Of::kCheck, check - 1);
    // The last turn that had begun.
    const auto after =
        std::upper_bound(run_.turns.begin(), run_.turns.end(), time_ms,
                         [](int64_t time, const Turn& turn) { return time < turn.start_ms; });
    if (after == run_.turns.begin()) return top_;
    const auto index = static_cast<size_t>(after - run_.turns.begin()) - 1;
    return run_.turns[index].end_ms >= time_ms ? ids_.SpanId(Of::kTurn, index) : top_;
  }

  void AddEvent(const RunEvent& event, size_t index) {
    Span span{ids_.SpanId(Of::kEvent, index),
              ParentAt(event.time_ms, event.check),
              "",
              event.time_ms,
              event.time_ms,
              kClient};
    if (const auto* decision = std::get_if<Event>(&event.what)) {
      AddRequest(event, *decision, &span);
    } else if (const auto* notice = std::get_if<Notice>(&event.what)) {
      if (notice->kind == Notice::Kind::kInference) AddInference(event, *notice, &span);
    }
  }

  void AddRequest(const RunEvent& event, const Event& decision, Span* span) {
    Attributes& facts = span->attributes;
    span->name = "connect";
    if (decision.kind == Event::Kind::kRequest) {
      span->name = decision.method;
      facts.Text(name::kHttpMethod, decision.method);
      facts.Text(name::kUrl, event.scheme + "://" + decision.host + ":" +
                                 std::to_string(decision.port) + decision.path);
    } else {
      facts.Text(name::kTransport, decision.transport.empty() ? "tcp" : decision.transport);
    }
    facts.Text(name::kServerAddress, decision.host).Integer(name::kServerPort, decision.port);
    facts.Text(name::kDecision, event.decision).Text(name::kEngine, EngineName(decision));
    facts.Text(name::kRule, decision.policy).Text(name::kProgram, decision.binary);
    if (event.decision == "denied" || event.decision == "failed") {
      facts.Text(name::kReason, decision.reason);
      span->Fail(event.decision, decision.reason);
    }
    Add(*span);
  }

  void AddInference(const RunEvent& event, const Notice& notice, Span* span) {
    Attributes& facts = span->attributes;
    span->start_ms = event.time_ms - event.duration_ms;
    span->name = OperationOf(notice.path);
    facts.Text(name::kOperation, span->name);
    facts.Text(name::kProvider, ProviderOf(notice.provider, notice.path));
    if (!notice.model.empty()) span->name += " " + notice.model;
    facts.Text(name::kResponseModel, notice.model);
    const auto count = [&](const char* kind) { return notice.CountAt(kind).value_or(0); };
    const int64_t cached = count("cache_read_tokens") + count("cache_write_tokens");
    facts.Integer(name::kInputTokens, count("input_tokens") + cached);
    facts.Integer(name::kOutputTokens, count("output_tokens"));
    facts.Integer(name::kCacheReadTokens, count("cache_read_tokens"));
    facts.Integer(name::kCacheWriteTokens, count("cache_write_tokens"));
    const int64_t status = count("http_status");
    if (status > 0) facts.Integer(name::kHttpStatus, status);
    if (!notice.succeeded) span->Fail(status >= 400 ? std::to_string(status) : "broke_off");
    Add(*span);
  }

  void AddProgram(const report::StartedProgram& program, size_t index) {
    Span span{ids_.SpanId(Of::kProgram, index), ParentAt(program.time_ms), BaseName(program.path),
              program.time_ms, program.time_ms};
    if (span.name.empty()) span.name = "program";
    span.attributes.Integer(name::kProcessPid, program.pid);
    span.attributes.Integer(name::kProcessParent, program.parent);
    span.attributes.Text(name::kProcessPath, program.path);
    span.attributes.Text(name::kProcessName, BaseName(program.path));
    if (settings_.contents) {
      span.attributes.List(name::kProcessArguments, program.arguments);
    }
    Add(span);
  }

  const RunMaterial& run_;
  const OtlpSettings& settings_;
  const TraceIds& ids_;
  std::string top_;  // The span that the agent's doings are in.
  Message spans_;
};

}  // namespace

std::string OperationOf(std::string_view path) {
  if (path.find("enerateContent") != std::string_view::npos) return "generate_content";
  if (path.ends_with("/embeddings")) return "embeddings";
  const bool text = path.ends_with("/completions") && !path.ends_with("/chat/completions");
  return text ? "text_completion" : "chat";
}

Message RenderTraces(const Exported& exported) {
  return RenderRequest(exported, otlp::kResourceSpans, otlp::kScopeSpans, Trace(exported).Render());
}

}  // namespace telemetry
