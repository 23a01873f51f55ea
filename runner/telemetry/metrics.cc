// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "record/event.h"
#include "telemetry/attributes.h"
#include "telemetry/names.h"
#include "telemetry/otlp/messages.h"
#include "telemetry/signals.h"

namespace telemetry {
namespace {

using record::Notice;

constexpr uint64_t kDelta = 1;  // AggregationTemporality.
constexpr uint64_t kCumulative = 2;
constexpr double kSecond = 1000;  // In milliseconds.
// Of the GenAI conventions, for what a model does; and of a run.
constexpr std::array kShortBounds = {0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                     1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
constexpr std::array kRunBounds = {1.0,   5.0,   10.0,   30.0,   60.0,   120.0,
                                   300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0};

class Metrics {
 public:
  explicit Metrics(const Exported& exported) : run_(exported.run), settings_(exported.settings) {
    agent_.Text(name::kAgentName, run_.record.agent.name);
    agent_.Text(name::kTask, run_.record.agent.task);
  }

  Message Render() {
    AddRun();
    AddRequests();
    AddLimits();
    AddInferences();
    AddAgent();
    return std::move(metrics_);
  }

 private:
  void Begin(std::string_view name, std::string_view unit, std::string_view description) {
    metric_ = {};
    metric_.Text(otlp::kMetricName, name).Text(otlp::kMetricDescription, description);
    metric_.Text(otlp::kMetricUnit, unit);
    points_ = {};
  }

  Message Point() const {
    Message point;
    const auto nanos = [](int64_t ms) {
      return static_cast<uint64_t>(std::max<int64_t>(ms, 0)) * kNanosPerMilli;
    };
    point.Number(otlp::kPointStart, nanos(run_.record.started_at_ms));
    point.Number(otlp::kPointTime, nanos(run_.record.finished_at_ms));
    return point;
  }

  void Integer(const Attributes& attributes, int64_t value) {
    Message point = Point();
    point.Number(otlp::kPointInteger, static_cast<uint64_t>(std::max<int64_t>(value, 0)));
    attributes.AppendTo(otlp::kPointAttributes, &point);
    points_.Child(otlp::kDataPoints, std::move(point));
  }

  void Real(const Attributes& attributes, double value) {
    Message point = Point();
    point.Real(otlp::kPointReal, value);
    attributes.AppendTo(otlp::kPointAttributes, &point);
    points_.Child(otlp::kDataPoints, std::move(point));
  }

  // `values` is not empty.
  void Distribution(const Attributes& attributes, const std::vector<double>& values,
                    std::span<const double> bounds) {
    Message point = Point();
    std::vector<uint64_t> buckets(bounds.size() + 1);
    double sum = 0;
    for (const double value : values) {
      sum += value;
      // A bucket includes its upper bound.
      ++buckets[static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) -
                                    bounds.begin())];
    }
    point.Number(otlp::kHistogramCount, values.size()).Real(otlp::kHistogramSum, sum);
    for (const uint64_t bucket : buckets) point.Number(otlp::kBucketCounts, bucket);
    for (const double bound : bounds) point.Real(otlp::kExplicitBounds, bound);
    attributes.AppendTo(otlp::kHistogramAttributes, &point);
    point.Real(otlp::kHistogramMin, *std::min_element(values.begin(), values.end()));
    point.Real(otlp::kHistogramMax, *std::max_element(values.begin(), values.end()));
    points_.Child(otlp::kDataPoints, std::move(point));
  }

  uint64_t Temporality() const { return settings_.delta ? kDelta : kCumulative; }

  void EndSum() {
    points_.Number(otlp::kTemporality, Temporality()).Number(otlp::kMonotonic, 1);
    metric_.Child(otlp::kSum, std::move(points_));
    metrics_.Child(otlp::kMetrics, std::move(metric_));
  }
  void EndHistogram() {
    points_.Number(otlp::kTemporality, Temporality());
    metric_.Child(otlp::kHistogram, std::move(points_));
    metrics_.Child(otlp::kMetrics, std::move(metric_));
  }
  void EndGauge() {
    metric_.Child(otlp::kGauge, std::move(points_));
    metrics_.Child(otlp::kMetrics, std::move(metric_));
  }

  void AddRun() {
    const report::RunRecord& record = run_.record;
    Attributes facts = agent_;
    facts.Text(name::kTaskRunResult, ResultOf(record.outcome.kind));
    facts.Text(name::kOutcome, report::Render(record.outcome.kind));
    Begin(name::kRunDuration, "s", "The duration of a run");
    const int64_t ms = record.finished_at_ms - record.started_at_ms;
    Distribution(facts, {static_cast<double>(std::max<int64_t>(ms, 0)) / kSecond}, kRunBounds);
    EndHistogram();
    const report::UsageRecord& usage = record.usage;
    if (usage.tokens() > 0) {
      Begin(name::kRunTokens, "{token}", "The tokens that a run's models used, of all kinds");
      Integer(agent_, usage.tokens());
      EndSum();
    }
    if (!usage.cost_usd) return;
    Begin(name::kRunCost, "{USD}", "What a run's models cost");
    Real(agent_, *usage.cost_usd);
    EndSum();
  }

  void AddRequests() {
    std::map<std::string, int64_t> counts;
    for (const RunEvent& event : run_.events) {
      if (!event.decision.empty()) ++counts[event.decision];
    }
    if (counts.empty()) return;
    Begin(name::kRequests, "{request}", "Requests and connections by what was decided");
    for (const auto& [decision, count] : counts) {
      Attributes facts = agent_;
      facts.Text(name::kDecision, decision);
      Integer(facts, count);
    }
    EndSum();
  }

  Attributes OfLimit(const report::LimitRecord& limit) const {
    Attributes facts = agent_;
    facts.Text(name::kLimit, limit.name).Text(name::kUnit, limit.unit);
    return facts;
  }

  void AddLimits() {
    const std::vector<report::LimitRecord>& limits = run_.record.limits;
    if (limits.empty()) return;
    const auto gauge = [&](std::string_view name, std::string_view description, auto member) {
      Begin(name, "1", description);
      for (const report::LimitRecord& limit : limits) {
        if (limit.*member) Real(OfLimit(limit), *(limit.*member));
      }
      if (!points_.empty()) EndGauge();
    };
    gauge(name::kLimitBound, "The bound of a limit, in the limit's unit",
          &report::LimitRecord::limit);
    gauge(name::kLimitUsed, "What was used of a limit, in the limit's unit",
          &report::LimitRecord::used);
    Begin(name::kLimitReached, "{run}", "Runs that a limit ended");
    for (const report::LimitRecord& limit : limits) {
      if (limit.fired) Integer(OfLimit(limit), 1);
    }
    if (!points_.empty()) EndSum();
  }

  // The answers of one model.
  struct Inferences {
    Attributes facts;
    std::vector<double> seconds;
    std::array<int64_t, 4> tokens{};
  };

  void AddInferences() {
    struct TokenKind {
      std::string_view metric;
      const char* count;
    };
    // The input includes what came from a cache.
    constexpr std::array<TokenKind, 4> kKinds = {
        {{name::kInferenceInput, "input_tokens"},
         {name::kInferenceOutput, "output_tokens"},
         {name::kInferenceCacheRead, "cache_read_tokens"},
         {name::kInferenceCacheWrite, "cache_write_tokens"}}};
    std::map<std::string, Inferences> models;
    for (const RunEvent& event : run_.events) {
      const auto* notice = std::get_if<Notice>(&event.what);
      if (notice == nullptr || notice->kind != Notice::Kind::kInference) continue;
      ++inferences_;
      Inferences& model = models[notice->provider + " " + notice->model];
      if (model.seconds.empty()) {
        model.facts.Text(name::kOperation, OperationOf(notice->path));
        model.facts.Text(name::kProvider, ProviderOf(notice->provider, notice->path));
        model.facts.Text(name::kResponseModel, notice->model);
      }
      model.seconds.push_back(static_cast<double>(event.duration_ms) / kSecond);
      for (size_t i = 0; i < kKinds.size(); ++i) {
        const int64_t tokens = notice->CountAt(kKinds[i].count).value_or(0);
        model.tokens[i] += tokens;
        if (i >= 2) model.tokens[0] += tokens;
      }
    }
    if (models.empty()) return;
    Begin(name::kInferenceDuration, "s", "The duration of a request to a model");
    for (const auto& [key, model] : models) Distribution(model.facts, model.seconds, kShortBounds);
    EndHistogram();
    for (size_t i = 0; i < kKinds.size(); ++i) {
      Begin(kKinds[i].metric, "{token}", "Tokens that models used");
      for (const auto& [key, model] : models) Integer(model.facts, model.tokens[i]);
      EndSum();
    }
  }

  void AddAgent() {
    const PhaseTime* agent = run_.FindPhase("agent");
    if (agent == nullptr) return;
    Attributes facts;
    facts.Text(name::kOperation, "invoke_agent");
    facts.Text(name::kAgentName, run_.record.agent.name);
    const auto once = [&](std::string_view name, std::string_view unit,
                          std::string_view description, double value,
                          std::span<const double> bounds) {
      Begin(name, unit, description);
      Distribution(facts, {value}, bounds);
      EndHistogram();
    };
    constexpr std::array kCallBounds = {0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0};
    once(name::kAgentDuration, "s", "The duration of an agent's work",
         static_cast<double>(agent->end_ms - agent->start_ms) / kSecond, kRunBounds);
    once(name::kAgentInferences, "{call}", "Requests to models in an agent's work",
         static_cast<double>(inferences_), kCallBounds);
    once(name::kAgentTools, "{call}", "Tool calls in an agent's work",
         static_cast<double>(run_.record.usage.tool_calls), kCallBounds);
    std::map<std::string, std::vector<double>> tools;
    for (const ToolCall& tool : run_.tools) {
      tools[tool.name].push_back(static_cast<double>(tool.end_ms - tool.start_ms) / kSecond);
    }
    if (tools.empty()) return;
    Begin(name::kToolDuration, "s", "The duration of a tool call");
    for (const auto& [tool, seconds] : tools) {
      Attributes of_tool;
      of_tool.Text(name::kOperation, "execute_tool").Text(name::kToolName, tool);
      Distribution(of_tool, seconds, kShortBounds);
    }
    EndHistogram();
  }

  const RunMaterial& run_;
  const OtlpSettings& settings_;
  Attributes agent_;
  int64_t inferences_ = 0;
  Message metric_;
  Message points_;
  Message metrics_;
};

}  // namespace

Message RenderMetrics(const Exported& exported) {
  return RenderRequest(exported, otlp::kResourceMetrics, otlp::kScopeMetrics,
                       Metrics(exported).Render());
}

}  // namespace telemetry
