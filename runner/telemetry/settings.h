// SPDX-License-Identifier: Apache-2.0
// Where a run's telemetry goes, as the environment says it: the variables that every SDK of
// OpenTelemetry reads (specification, "OTLP Exporter Configuration" and "SDK environment
// variables"), and the trace of the job. Pure.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace telemetry {

// Gives a variable of the environment, as sys::Environment does.
using VariableReader = std::function<std::optional<std::string>(const std::string&)>;

enum class Signal { kTraces, kMetrics, kLogs };
inline constexpr std::array<Signal, 3> kSignals = {Signal::kTraces, Signal::kMetrics,
                                                   Signal::kLogs};

// Where one signal goes, and how.
struct Exporter {
  std::string url;  // Empty if the signal is off.
  // They hold credentials: for the collector alone, never for a record, a log or an error.
  std::vector<std::pair<std::string, std::string>> headers;
  bool json = false;  // Else protobuf.
  bool gzip = false;
  std::chrono::milliseconds timeout{10'000};
  std::string ca_file;  // PEM; empty for that of the run's other requests.
  std::string client_certificate;
  std::string client_key;
};

// The span of the job that the run's span is a child of (W3C Trace Context).
struct TraceParent {
  std::string trace_id;  // 16 bytes; empty if there is no parent.
  std::string span_id;   // 8 bytes.
  unsigned flags = 0;
  std::string state;  // TRACESTATE as it came.
};

struct OtlpSettings {
  std::array<Exporter, 3> exporters;  // In the order of Signal.
  TraceParent parent;
  bool delta = false;     // The temporality of sums and histograms; else cumulative.
  bool contents = false;  // What tools were given and gave is exported.
  std::string service_name = "agentic-ci";
  std::vector<std::pair<std::string, std::string>> resource;  // OTEL_RESOURCE_ATTRIBUTES.
  // Facts about the pipeline and the repository by attribute, from the variables of the CI system:
  // of the repository and its pipeline, and of this execution of it.
  std::vector<std::pair<std::string_view, std::string>> pipeline;
  std::vector<std::pair<std::string_view, std::string>> execution;
  // What is wrong with the variables, one line each, without a value of theirs that may be secret.
  std::vector<std::string> faults;

  // Returns whether anything is exported.
  bool on() const {
    for (const Exporter& exporter : exporters) {
      if (!exporter.url.empty()) return true;
    }
    return false;
  }
  const Exporter& of(Signal signal) const { return exporters[static_cast<size_t>(signal)]; }
};

// Reads the settings. Without an endpoint, nothing else is looked at. Never fails: what cannot be
// used is a fault, and the signal that it is about is off where sending it could be wrong (gRPC, an
// invalid address, an unknown compression).
OtlpSettings ReadOtlpSettings(const VariableReader& variable);

// Parses a value of TRACEPARENT; without a trace if it is malformed, or of no trace.
TraceParent ParseTraceParent(std::string_view text);

}  // namespace telemetry
