// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "record/event.h"
#include "telemetry/attributes.h"
#include "telemetry/names.h"
#include "telemetry/otlp/messages.h"
#include "telemetry/signals.h"

namespace telemetry {
namespace {

struct Severity {
  uint64_t number;
  std::string_view text;
};

// By OCSF's severity_id, from 0; OpenTelemetry's numbers (Logs Data Model, SeverityNumber).
constexpr std::array<Severity, 7> kSeverities = {{{9, "Unknown"},
                                                  {9, "Informational"},
                                                  {10, "Low"},
                                                  {13, "Medium"},
                                                  {17, "High"},
                                                  {21, "Critical"},
                                                  {24, "Fatal"}}};

// Whether RenderTraces() has a span for the event.
bool HasSpan(const RunEvent& event) {
  const auto* notice = std::get_if<record::Notice>(&event.what);
  if (notice != nullptr) return notice->kind == record::Notice::Kind::kInference;
  return std::holds_alternative<record::Event>(event.what);
}

std::string SpanOf(const Exported& exported, const RunEvent& event, size_t index) {
  using Of = TraceIds::Of;
  if (HasSpan(event)) return exported.ids.SpanId(Of::kEvent, index);
  if (event.check > 0) return exported.ids.SpanId(Of::kCheck, event.check - 1);
  const bool agent = exported.run.FindPhase("agent") != nullptr;
  return exported.ids.SpanId(agent ? Of::kAgent : Of::kRun);
}

Message RenderLog(const Exported& exported, const RunEvent& event, size_t index) {
  Message log;
  log.Number(otlp::kLogTime, static_cast<uint64_t>(event.time_ms) * kNanosPerMilli);
  const Severity& severity = kSeverities[static_cast<size_t>(event.severity)];
  log.Number(otlp::kSeverityNumber, severity.number).Text(otlp::kSeverityText, severity.text);
  Message body;
  body.Text(otlp::kStringValue, event.line);
  log.Child(otlp::kLogBody, std::move(body));
  Attributes attributes;
  attributes.Text(name::kDecision, event.decision);
  if (const auto* decision = std::get_if<record::Event>(&event.what)) {
    attributes.Text(name::kServerAddress, decision->host);
  }
  attributes.AppendTo(otlp::kLogAttributes, &log);
  if (exported.traced) {
    log.Number(otlp::kLogFlags, 1).Text(otlp::kLogTraceId, exported.ids.trace_id());
    log.Text(otlp::kLogSpanId, SpanOf(exported, event, index));
  }
  log.Number(otlp::kLogObserved, static_cast<uint64_t>(event.time_ms) * kNanosPerMilli);
  log.Text(otlp::kEventName, "ocsf." + event.class_name);
  return log;
}

}  // namespace

Message RenderLogs(const Exported& exported) {
  Message records;
  for (size_t i = 0; i < exported.run.events.size(); ++i) {
    records.Child(otlp::kLogRecords, RenderLog(exported, exported.run.events[i], i));
  }
  return RenderRequest(exported, otlp::kResourceLogs, otlp::kScopeLogs, std::move(records));
}

}  // namespace telemetry
