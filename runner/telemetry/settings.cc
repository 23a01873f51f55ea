// SPDX-License-Identifier: Apache-2.0
#include "telemetry/settings.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "codec/text/percent.h"
#include "net/url.h"
#include "telemetry/names.h"

namespace telemetry {
namespace {

constexpr std::string_view kPrefix = "OTEL_EXPORTER_OTLP_";
constexpr size_t kPairsMax = 64;
constexpr size_t kValueBytesMax = 4096;
constexpr size_t kStateBytesMax = 512;  // Trace Context, 3.3.1.5.

struct SignalRow {
  std::string_view word;  // In the variables.
  std::string_view path;  // Behind the general endpoint.
};
// In the order of Signal.
constexpr std::array<SignalRow, 3> kRows = {
    {{"TRACES", "v1/traces"}, {"METRICS", "v1/metrics"}, {"LOGS", "v1/logs"}}};

using Pairs = std::vector<std::pair<std::string, std::string>>;

// "k=v,k=v" with percent-encoded values, as W3C Baggage without properties. Nothing of a list with
// a part that is not like that.
std::optional<Pairs> ParsePairs(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = ascii::Trimmed(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    const std::string_view key = ascii::Trimmed(part.substr(0, equals));
    std::string value = codec::PercentDecode(ascii::Trimmed(part.substr(equals + 1)));
    if (key.empty() || value.size() > kValueBytesMax || pairs.size() == kPairsMax) {
      return std::nullopt;
    }
    pairs.emplace_back(key, std::move(value));
  }
  return pairs;
}

class Reader {
 public:
  explicit Reader(const VariableReader& variable) : variable_(variable) {}

  OtlpSettings Read() {
    if (!HasEndpoint() || ascii::LowerCase(Get("OTEL_SDK_DISABLED")) == "true") return {};
    for (const Signal signal : kSignals) ReadSignal(signal);
    if (!settings_.on()) return std::move(settings_);
    ReadParent();
    ReadResource();
    ReadCi();
    const std::string preference =
        ascii::LowerCase(Get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"));
    settings_.delta = preference == "delta" || preference == "lowmemory";
    const std::string contents =
        ascii::LowerCase(Get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"));
    settings_.contents =
        contents == "true" || contents == "span_only" || contents == "span_and_event";
    return std::move(settings_);
  }

 private:
  // An empty variable is one that is not set.
  std::string Get(std::string_view name) const { return variable_(std::string(name)).value_or(""); }

  // The signal's own variable, or else the general one.
  std::string Of(const SignalRow& row, std::string_view what) const {
    std::string own = Get(std::string(kPrefix).append(row.word).append("_").append(what));
    return own.empty() ? Get(std::string(kPrefix).append(what)) : own;
  }

  bool HasEndpoint() const {
    if (!Get(std::string(kPrefix) + "ENDPOINT").empty()) return true;
    return std::any_of(kRows.begin(), kRows.end(), [&](const SignalRow& row) {
      return !Get(std::string(kPrefix).append(row.word) + "_ENDPOINT").empty();
    });
  }

  void Fault(std::string text) {
    std::vector<std::string>& faults = settings_.faults;
    if (std::find(faults.begin(), faults.end(), text) == faults.end()) {
      faults.push_back(std::move(text));
    }
  }

  std::string UrlOf(const SignalRow& row) {
    std::string url = Get(std::string(kPrefix).append(row.word) + "_ENDPOINT");
    if (url.empty()) {
      url = Get(std::string(kPrefix) + "ENDPOINT");
      if (url.empty()) return {};
      if (!url.ends_with('/')) url += '/';
      url += row.path;
    }
    if (net::ParseUrl(url).ok()) return url;
    Fault("the endpoint for " + ascii::LowerCase(row.word) + " is not an http or https address");
    return {};
  }

  // Whether the signal is exported by this protocol. Of several exporters, one is enough.
  bool TakesOtlp(const SignalRow& row) {
    const std::string name = "OTEL_" + std::string(row.word) + "_EXPORTER";
    const std::string exporters = Get(name);
    if (exporters.empty()) return true;
    std::string_view rest = exporters;
    bool none = false;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view one = ascii::Trimmed(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (one == "otlp") return true;
      none = none || one == "none";
    }
    if (!none) Fault(name + " names no exporter that there is here: otlp or none");
    return false;
  }

  void ReadSignal(Signal signal) {
    const SignalRow& row = kRows[static_cast<size_t>(signal)];
    Exporter exporter;
    if (!TakesOtlp(row)) return;
    if (signal == Signal::kTraces && !Samples()) return;
    exporter.url = UrlOf(row);
    if (exporter.url.empty()) return;
    const std::string protocol = ascii::LowerCase(Of(row, "PROTOCOL"));
    exporter.json = protocol == "http/json";
    if (!protocol.empty() && protocol != "http/json" && protocol != "http/protobuf") {
      return Fault(
          protocol == "grpc"
              ? "OTLP over gRPC is not supported: set OTEL_EXPORTER_OTLP_PROTOCOL to "
                "http/protobuf, and the endpoint to the collector's port for it, often 4318"
              : "OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf or http/json");
    }
    const std::string compression = ascii::LowerCase(Of(row, "COMPRESSION"));
    exporter.gzip = compression == "gzip";
    if (!compression.empty() && compression != "gzip" && compression != "none") {
      return Fault("OTEL_EXPORTER_OTLP_COMPRESSION is not gzip or none");
    }
    std::optional<Pairs> headers = ParsePairs(Of(row, "HEADERS"));
    if (!headers) return Fault("OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,...");
    exporter.headers = *std::move(headers);
    ReadTimeout(row, &exporter);
    exporter.ca_file = Of(row, "CERTIFICATE");
    exporter.client_certificate = Of(row, "CLIENT_CERTIFICATE");
    exporter.client_key = Of(row, "CLIENT_KEY");
    settings_.exporters[static_cast<size_t>(signal)] = std::move(exporter);
  }

  void ReadTimeout(const SignalRow& row, Exporter* exporter) {
    const std::string text = Of(row, "TIMEOUT");
    int64_t ms = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (text.empty()) return;
    if (error != std::errc() || end != text.data() + text.size() || ms < 0) {
      return Fault("OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds");
    }
    if (ms > 0) exporter->timeout = std::chrono::milliseconds(ms);  // 0 means no limit.
  }

  // Whether spans are kept. The parent's decision counts unless the sampler is one without it.
  bool Samples() {
    const std::string sampler = ascii::LowerCase(Get("OTEL_TRACES_SAMPLER"));
    const TraceParent parent = ParseTraceParent(Get("TRACEPARENT"));
    const bool by_parent = sampler.empty() || sampler.starts_with("parentbased_");
    if (by_parent && !parent.trace_id.empty()) return (parent.flags & 1) != 0;
    if (sampler.ends_with("always_off")) return false;
    if (!sampler.empty() && !sampler.ends_with("always_on")) {
      Fault("OTEL_TRACES_SAMPLER is not supported: every run is sampled");
    }
    return true;
  }

  void ReadParent() {
    settings_.parent = ParseTraceParent(Get("TRACEPARENT"));
    const std::string state = Get("TRACESTATE");
    const bool printable =
        std::all_of(state.begin(), state.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (settings_.parent.trace_id.empty() || state.size() > kStateBytesMax || !printable) return;
    settings_.parent.state = state;
  }

  void ReadResource() {
    std::optional<Pairs> pairs = ParsePairs(Get("OTEL_RESOURCE_ATTRIBUTES"));
    if (!pairs) Fault("OTEL_RESOURCE_ATTRIBUTES is not KEY=VALUE,...");
    for (auto& [key, value] : pairs.value_or(Pairs{})) {
      if (key == name::kServiceName) {
        settings_.service_name = value;
      } else {
        settings_.resource.emplace_back(key, codec::ValidUtf8(value));
      }
    }
    const std::string service = Get("OTEL_SERVICE_NAME");
    if (!service.empty()) settings_.service_name = service;
    settings_.service_name = codec::ValidUtf8(settings_.service_name);
  }

  void ReadCi() {
    struct Row {
      std::string_view attribute;
      std::string_view variable;
    };
    constexpr std::array<Row, 5> kPipeline = {{{name::kPipelineName, "GITHUB_WORKFLOW"},
                                               {name::kPipelineName, "CI_PIPELINE_NAME"},
                                               {name::kTaskName, "GITHUB_JOB"},
                                               {name::kTaskName, "CI_JOB_NAME"},
                                               {name::kVcsRepositoryUrl, "CI_PROJECT_URL"}}};
    constexpr std::array<Row, 4> kExecution = {{{name::kPipelineRunId, "GITHUB_RUN_ID"},
                                                {name::kPipelineRunId, "CI_PIPELINE_ID"},
                                                {name::kPipelineRunUrl, "CI_PIPELINE_URL"},
                                                {name::kTaskRunUrl, "CI_JOB_URL"}}};
    const auto take = [&](const auto& rows, auto* facts) {
      for (const Row& row : rows) {
        const std::string value = Get(row.variable);
        if (!value.empty()) facts->emplace_back(row.attribute, value);
      }
    };
    take(kPipeline, &settings_.pipeline);
    const std::string server = Get("GITHUB_SERVER_URL");
    const std::string repository = Get("GITHUB_REPOSITORY");
    if (!server.empty() && !repository.empty()) {
      settings_.pipeline.emplace_back(name::kVcsRepositoryUrl, server + "/" + repository);
    }
    take(kExecution, &settings_.execution);
  }

  const VariableReader& variable_;
  OtlpSettings settings_;
};

}  // namespace

TraceParent ParseTraceParent(std::string_view text) {
  // version "-" trace-id "-" parent-id "-" flags; more only in later versions (Trace Context, 3.2).
  constexpr size_t kBytes = 55;
  text = ascii::Trimmed(text);
  if (text.size() < kBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const std::optional<std::string> version = codec::DecodeHex(text.substr(0, 2));
  const std::optional<std::string> trace = codec::DecodeHex(text.substr(3, 32));
  const std::optional<std::string> span = codec::DecodeHex(text.substr(36, 16));
  const std::optional<std::string> flags = codec::DecodeHex(text.substr(53, 2));
  if (!version || !trace || !span || !flags || version == "\xff") return {};
  const bool longer = text.size() > kBytes;
  if (longer && (text[kBytes] != '-' || version == std::string(1, '\0'))) return {};
  const auto is_zero = [](const std::string& id) {
    return id.find_first_not_of('\0') == std::string::npos;
  };
  if (is_zero(*trace) || is_zero(*span)) return {};
  return {*trace, *span, static_cast<unsigned char>((*flags)[0]), {}};
}

OtlpSettings ReadOtlpSettings(const VariableReader& variable) { return Reader(variable).Read(); }

}  // namespace telemetry
