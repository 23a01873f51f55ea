// SPDX-License-Identifier: Apache-2.0
// The three requests that export a run (Export{Trace,Metrics,Logs}ServiceRequest). Pure.
#pragma once

#include <string>
#include <string_view>

#include "telemetry/otlp/message.h"
#include "telemetry/run_material.h"
#include "telemetry/settings.h"
#include "telemetry/trace_ids.h"

namespace telemetry {

inline constexpr uint64_t kNanosPerMilli = 1'000'000;

// Everything that an exported run is made of. Borrowed.
struct Exported {
  const RunMaterial& run;
  const OtlpSettings& settings;
  const TraceIds& ids;
  bool traced = true;  // The spans are exported, too.
};

// Renders the run as a task of its pipeline, its phases and checks, the agent's invocation, and in
// it turns, tool calls, models' answers, requests and programs.
Message RenderTraces(const Exported& exported);
// Renders its figures.
Message RenderMetrics(const Exported& exported);
// Renders each record of the gateway as a log record, whose body is the line of OCSF.
Message RenderLogs(const Exported& exported);

// Returns `cicd.pipeline.task.run.result` for an outcome.
std::string_view ResultOf(report::OutcomeKind outcome);
// Wraps `items` (spans, metrics or log records) into a request: `in_request` is the request's field
// for a resource and its items, `in_resource` that one's field for a scope and its items. The
// resource is the run's pipeline, the scope this program.
Message RenderRequest(const Exported& exported, const Field& in_request, const Field& in_resource,
                      Message items);
// Returns "anthropic", "openai", ... for the server of a model (Notice::provider and its path), by
// its host or else by the form of its API; its host for another one.
std::string ProviderOf(std::string_view provider, std::string_view path);
// Returns `gen_ai.operation.name` for a request to a model, by its path: "chat" for most.
std::string OperationOf(std::string_view path);

}  // namespace telemetry
