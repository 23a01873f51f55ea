// SPDX-License-Identifier: Apache-2.0
#include "telemetry/export.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"
#include "base/version.h"
#include "codec/data/gzip.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "net/http_client.h"
#include "net/retry.h"
#include "net/url.h"
#include "telemetry/collector_retries.h"
#include "telemetry/signals.h"

namespace telemetry {
namespace {

constexpr std::chrono::seconds kExportTime{2};

constexpr std::array<std::string_view, 3> kSignalNames = {"traces", "metrics", "logs"};

Message Render(Signal signal, const Exported& exported) {
  switch (signal) {
    case Signal::kTraces:
      return RenderTraces(exported);
    case Signal::kMetrics:
      return RenderMetrics(exported);
    case Signal::kLogs:
      break;
  }
  return RenderLogs(exported);
}

std::string UserAgent() {
  const std::string version(kVersion);
  return "agentic-ci/" + version + " OTel-OTLP-Exporter-Cpp/" + version;
}

Result<Rejection> Send(const Exporter& exporter, const Message& message, const Reach& reach,
                       Deadline deadline) {
  net::HttpClientOptions options;
  options.ca_file = exporter.ca_file.empty() ? reach.ca_file : exporter.ca_file;
  options.client_certificate = exporter.client_certificate;
  options.client_key = exporter.client_key;
  options.user_agent = UserAgent();
  options.proxy = reach.proxy;
  options.response_bytes_max = kAnswerBytesMax;
  net::HttpClient client = TRY(net::HttpClient::Create(std::move(options)));

  net::HttpRequest request;
  request.method = "POST";
  request.url = exporter.url;
  request.headers = exporter.headers;
  request.headers.emplace_back("content-type",
                               exporter.json ? "application/json" : "application/x-protobuf");
  request.body = exporter.json ? message.Json() : message.Protobuf();
  if (exporter.gzip) {
    request.body = codec::Gzip(request.body);
    request.headers.emplace_back("content-encoding", "gzip");
  }
  net::RetryPolicy policy = CollectorRetries();
  int status = 0;
  // 429, 502, 503 and 504 alone are worth another try.
  policy.status_of = [&status](const net::HttpResponse& answer) {
    status = answer.status;
    return status == 502 || status == 504 ? 503 : status;
  };
  const Deadline own = Deadline::After(exporter.timeout);
  const net::HttpResponse answer =
      TRY(net::SendWithRetries(client, request, policy, std::min(own, deadline)));
  if (status < 200 || status > 299) {
    return Error{Code::kTemporary, "the answer was " + std::to_string(status)};
  }
  return ParseRejection(answer.body, exporter.json);
}

// What became of one signal.
struct Sent {
  Rejection rejection;
  std::string why;  // Why it was not sent; or empty.
};

void Say(Signal signal, const Exporter& exporter, const Sent& sent) {
  const std::string name(kSignalNames[static_cast<size_t>(signal)]);
  const std::string to = net::ShownUrl(exporter.url);
  const Rejection& rejection = sent.rejection;
  if (!sent.why.empty()) {
    logging::Warn("telemetry was not sent", {{"signal", name}, {"to", to}, {"why", sent.why}});
  } else if (rejection.count > 0 || !rejection.reason.empty()) {
    logging::Warn("the collector did not take all telemetry",
                  {{"signal", name},
                   {"to", to},
                   {"rejected", std::to_string(rejection.count)},
                   {"why", rejection.reason}});
  }
}

void Say(const EventTarget& target, const Delivery& delivery) {
  if (delivery.why.empty()) {
    if (delivery.sent == 0) return;
    logging::Info("records sent",
                  {{"to", target.Shown()}, {"records", std::to_string(delivery.sent)}});
    return;
  }
  logging::Warn("records were not sent", {{"to", target.Shown()},
                                          {"sent", std::to_string(delivery.sent)},
                                          {"unsent", std::to_string(delivery.unsent)},
                                          {"why", delivery.why}});
}

TraceIds MakeIds(const OtlpSettings& settings) {
  const std::string random = codec::DecodeHex(sys::RandomHex()).value_or("");
  const std::string more = codec::DecodeHex(sys::RandomHex()).value_or("");
  uint64_t seed = 0;
  ENSURE(more.size() >= sizeof seed);
  std::memcpy(&seed, more.data(), sizeof seed);
  return TraceIds(settings.parent.trace_id.empty() ? random : settings.parent.trace_id, seed);
}

}  // namespace

void Export(const FinishedRun& run, const Destinations& destinations) {
  const Deadline deadline = Deadline::After(kExportTime);
  const OtlpSettings& otlp = destinations.otlp;
  for (const std::string& fault : otlp.faults) {
    logging::Warn("telemetry is not sent as asked", {{"why", fault}});
  }
  const Status initialised = net::InitialiseCurl();  // Before there are threads.
  if (!initialised.ok()) return logging::Warn(initialised.error().what);
  std::array<Sent, 3> sent;
  std::vector<Delivery> delivered(destinations.events.size());
  {
    std::vector<sys::BackgroundTask> tasks;
    for (size_t i = 0; i < delivered.size(); ++i) {
      tasks.emplace_back([&, i] {
        delivered[i] = DeliverEvents(run, destinations.events[i], destinations.reach, deadline);
      });
    }
    // Outlives the tasks.
    RunMaterial material =
        otlp.on() ? ReadMaterial(run) : RunMaterial{run.record, {}, {}, {}, {}, {}};
    const TraceIds ids = MakeIds(otlp);
    const Exported exported{material, otlp, ids, !otlp.of(Signal::kTraces).url.empty()};
    std::vector<sys::BackgroundTask> senders;
    for (const Signal signal : kSignals) {
      const Exporter& exporter = otlp.of(signal);
      if (exporter.url.empty()) continue;
      senders.emplace_back([&, signal] {
        Sent& own = sent[static_cast<size_t>(signal)];
        Result<Rejection> result =
            Send(otlp.of(signal), Render(signal, exported), destinations.reach, deadline);
        if (result.ok())
          own.rejection = std::move(result).value();
        else
          own.why = codec::NeutralLine(result.error().what, 300);
      });
    }
    for (sys::BackgroundTask& sender : senders) sender.Wait();
  }
  for (const Signal signal : kSignals) {
    if (!otlp.of(signal).url.empty()) {
      Say(signal, otlp.of(signal), sent[static_cast<size_t>(signal)]);
    }
  }
  for (size_t i = 0; i < delivered.size(); ++i) Say(destinations.events[i], delivered[i]);
}

}  // namespace telemetry
