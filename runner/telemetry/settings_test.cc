// SPDX-License-Identifier: Apache-2.0
#include "telemetry/settings.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "codec/text/hex.h"

namespace telemetry {
namespace {

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

using Variables = std::map<std::string, std::string>;

OtlpSettings Read(const Variables& variables) {
  return ReadOtlpSettings([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST_CASE("Without an endpoint, nothing is on and no other variable is looked at") {
  int asked = 0;
  const OtlpSettings settings = ReadOtlpSettings([&](const std::string& name) {
    ++asked;
    CHECK(name.ends_with("_ENDPOINT"));
    return std::optional<std::string>("");
  });
  CHECK_FALSE(settings.on());
  CHECK(settings.faults.empty());
  CHECK(asked == 4);
}

TEST_CASE("The general endpoint is a base, a signal's own is used as it is") {
  const OtlpSettings settings = Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/x"},
                                      {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://l/own"}});
  CHECK(settings.of(Signal::kTraces).url == "http://c:4318/x/v1/traces");
  CHECK(settings.of(Signal::kMetrics).url == "http://c:4318/x/v1/metrics");
  CHECK(settings.of(Signal::kLogs).url == "https://l/own");
  const OtlpSettings one = Read({{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "https://l"}});
  CHECK(one.of(Signal::kTraces).url.empty());
  CHECK(one.on());
}

TEST_CASE("A signal's own variable wins over the general one") {
  const OtlpSettings settings = Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                                      {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
                                      {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"},
                                      {"OTEL_EXPORTER_OTLP_HEADERS", "a=1, b=x%20y%3D"},
                                      {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "c=3"},
                                      {"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip"},
                                      {"OTEL_EXPORTER_OTLP_TIMEOUT", "500"},
                                      {"OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE", "/ca.pem"}});
  CHECK_FALSE(settings.of(Signal::kTraces).json);
  CHECK(settings.of(Signal::kLogs).json);
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(settings.of(Signal::kTraces).headers == Pairs{{"c", "3"}});
  CHECK(settings.of(Signal::kLogs).headers == Pairs{{"a", "1"}, {"b", "x y="}});
  CHECK(settings.of(Signal::kMetrics).gzip);
  CHECK_FALSE(settings.of(Signal::kTraces).gzip);
  CHECK(settings.of(Signal::kTraces).timeout.count() == 500);
  CHECK(settings.of(Signal::kLogs).ca_file == "/ca.pem");
  CHECK(settings.of(Signal::kTraces).ca_file.empty());
  CHECK(settings.faults.empty());
}

TEST_CASE("What cannot be used switches its signal off and is said, without a header's value") {
  const auto fault = [](std::string name, std::string value) {
    Variables variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}};
    variables[std::move(name)] = std::move(value);
    const OtlpSettings settings = Read(variables);
    CHECK(settings.faults.size() == 1);
    const std::string said = settings.faults.empty() ? "" : settings.faults.front();
    CHECK(said.find("s3cret") == std::string::npos);
    return std::pair(settings.on(), said);
  };
  CHECK(fault("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").second.find("gRPC") != std::string::npos);
  CHECK_FALSE(fault("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").first);
  CHECK_FALSE(fault("OTEL_EXPORTER_OTLP_PROTOCOL", "soap").first);
  CHECK_FALSE(fault("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd").first);
  CHECK_FALSE(fault("OTEL_EXPORTER_OTLP_HEADERS", "authorization s3cret").first);
  CHECK(fault("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4317").first);  // The other two.
  CHECK(fault("OTEL_TRACES_EXPORTER", "zipkin").first);
  CHECK(fault("OTEL_RESOURCE_ATTRIBUTES", "nothing").first);
  CHECK(fault("OTEL_EXPORTER_OTLP_TIMEOUT", "soon").first);
}

TEST_CASE("The switches of every SDK switch off") {
  const Variables on = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}};
  const auto with = [&](std::string name, std::string value) {
    Variables variables = on;
    variables[std::move(name)] = std::move(value);
    return Read(variables);
  };
  CHECK(Read(on).on());
  CHECK_FALSE(with("OTEL_SDK_DISABLED", "TRUE").on());
  CHECK(with("OTEL_SDK_DISABLED", "1").on());
  CHECK(with("OTEL_LOGS_EXPORTER", "none").of(Signal::kLogs).url.empty());
  CHECK_FALSE(with("OTEL_LOGS_EXPORTER", "console, otlp").of(Signal::kLogs).url.empty());
  CHECK(with("OTEL_TRACES_SAMPLER", "always_off").of(Signal::kTraces).url.empty());
  CHECK(with("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Delta").delta);
  CHECK_FALSE(Read(on).contents);
  CHECK(with("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true").contents);
}

TEST_CASE("A parent that is not sampled has no children, unless the sampler does not ask it") {
  Variables variables = {
      {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
      {"TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}};
  CHECK(Read(variables).of(Signal::kTraces).url.empty());
  CHECK_FALSE(Read(variables).of(Signal::kLogs).url.empty());
  variables["OTEL_TRACES_SAMPLER"] = "always_on";
  CHECK_FALSE(Read(variables).of(Signal::kTraces).url.empty());
}

TEST_CASE("The service's name and attributes come from their variables") {
  const OtlpSettings settings =
      Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
            {"OTEL_RESOURCE_ATTRIBUTES", "service.name=attributes,team=a%2Cb"},
            {"OTEL_SERVICE_NAME", "own"}});
  CHECK(settings.service_name == "own");
  CHECK(settings.resource == std::vector<std::pair<std::string, std::string>>{{"team", "a,b"}});
  CHECK(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}}).service_name == "agentic-ci");
}

TEST_CASE("A TRACEPARENT is read as Trace Context says, and any other is none") {
  const TraceParent parent = ParseTraceParent(kParent);
  CHECK(codec::EncodeHex(parent.trace_id) == "0af7651916cd43dd8448eb211c80319c");
  CHECK(codec::EncodeHex(parent.span_id) == "b7ad6b7169203331");
  CHECK(parent.flags == 1);
  const std::string text = kParent;
  CHECK_FALSE(ParseTraceParent("cc" + text.substr(2) + "-later").trace_id.empty());
  const auto replaced = [&](size_t at, size_t count, char c) {
    return std::string(text).replace(at, count, std::string(count, c));
  };
  for (const std::string& malformed :
       {std::string(), std::string("x"), text.substr(1), text + "-more", text + "0",
        replaced(0, 2, 'f'), replaced(3, 32, '0'), replaced(36, 16, '0'), replaced(3, 1, 'G'),
        replaced(3, 1, 'A'), replaced(2, 1, '_'), "cc" + text.substr(2) + "x"}) {
    CHECK(ParseTraceParent(malformed).trace_id.empty());
  }
}

TEST_CASE("TRACESTATE goes with a parent alone, and only if it is one") {
  Variables variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                         {"TRACEPARENT", kParent},
                         {"TRACESTATE", "a=1,b=2"}};
  CHECK(Read(variables).parent.state == "a=1,b=2");
  variables["TRACESTATE"] = "a=\n";
  CHECK(Read(variables).parent.state.empty());
  variables["TRACESTATE"] = "a=1";
  variables["TRACEPARENT"] = "no";
  CHECK(Read(variables).parent.state.empty());
}

}  // namespace
}  // namespace telemetry
