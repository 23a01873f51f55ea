// SPDX-License-Identifier: Apache-2.0
#include "report/stats/tally.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "advise/suggest.h"
#include "codec/text/neutral.h"
#include "report/wording.h"

namespace report::stats {
namespace {

constexpr size_t kGroupsMax = 10000;
constexpr size_t kNameBytesMax = 200;

const Column kRuns{"runs", "runs", Unit::kCount};
const Column kSucceeded{"succeeded", "succeeded", Unit::kShare};
const Column kMedian{"median_ms", "median", Unit::kMilliseconds};
const Column kSlow{"p95_ms", "95 %", Unit::kMilliseconds};
const Column kCost{"cost_usd", "cost", Unit::kUsd};

// The value that `share` of `all` do not exceed; nullopt of none.
std::optional<double> Quantile(std::vector<float> all, double share) {
  if (all.empty()) return std::nullopt;
  const auto at =
      all.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(all.size() - 1) + 0.5);
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

}  // namespace

Tally::Group& Tally::In(Groups& groups, std::vector<std::string> key) {
  for (std::string& part : key) part = codec::CutUtf8(codec::ValidUtf8(part), kNameBytesMax);
  if (groups.size() >= kGroupsMax && !groups.contains(key)) {
    std::fill(key.begin(), key.end(), "(others)");
  }
  return groups[std::move(key)];
}

// Returns the policy's line that would allow it, which is not taken from the report.
std::string Tally::LineFor(const DeniedRequest& denied) {
  const advise::Denial& denial = denied.denial;
  if (denied.allow_line.empty()) return {};
  if (!denial.operations.empty()) return advise::SuggestLine(denial);
  std::vector<std::string> key = {denial.host,   std::to_string(denial.port),
                                  denial.method, denial.path,
                                  denial.binary, denial.protocol};
  const auto known = lines_.find(key);
  if (known != lines_.end()) return known->second;
  std::string line = advise::SuggestLine(denial);
  if (lines_.size() < kGroupsMax) lines_.emplace(std::move(key), line);
  return line;
}

void Tally::Add(const RunRecord& record) {
  ++overview_.runs;
  const int64_t start = record.started_at_ms;
  if (overview_.first_ms == 0 || start < overview_.first_ms) overview_.first_ms = start;
  overview_.last_ms = std::max(overview_.last_ms, start);
  const UsageRecord& usage = record.usage;
  const double cost = usage.cost_usd.value_or(usage.priced_cost_usd);
  overview_.cost_usd += cost;
  if (!usage.cost_usd && (usage.turns > 0 || usage.output_tokens > 0)) ++overview_.cost_unknown;

  const bool succeeded = record.outcome.kind == OutcomeKind::kSuccess;
  const auto count = [&](Group& group) {
    ++group.runs;
    group.succeeded += succeeded ? 1 : 0;
    for (int64_t tokens : {usage.input_tokens, usage.output_tokens, usage.cache_read_tokens,
                           usage.cache_write_tokens}) {
      group.tokens += static_cast<double>(tokens);
    }
    group.cost_usd += cost;
    group.ms.push_back(static_cast<float>(1000 * DurationSeconds(record)));
    if (start < group.last_ms) return;
    group.last_ms = start;
    group.last = record.event.run_url;
  };
  const std::string outcome = Render(record.outcome.kind);
  count(In(outcomes_, {outcome}));
  count(In(days_, {HumanDate(start).substr(0, 10)}));
  const std::string& model = usage.model.empty() ? record.agent.model : usage.model;
  count(In(work_, {record.agent.task, record.agent.name, model}));
  if (!succeeded && record.outcome.kind != OutcomeKind::kSkipped) {
    const std::string& limit = record.outcome.limit;
    count(In(failures_, {limit.empty() ? outcome : outcome + ": " + limit, record.outcome.reason}));
  }
  std::set<const Group*> seen;  // A run counts once in each.
  for (const DeniedRequest& denied : record.denials) {
    Group& group = In(
        denials_, {denied.denial.host + ":" + std::to_string(denied.denial.port), LineFor(denied)});
    group.requests += static_cast<double>(denied.count);
    if (seen.insert(&group).second) ++group.runs;
  }
  for (const auto& [name, ms] : record.phases_ms) {
    In(phases_, {name}).ms.push_back(static_cast<float>(ms));
  }
}

Table Tally::Fill(Table table, const Groups& groups, const Weight& weight, const Rest& rest) {
  std::vector<const Groups::value_type*> order;
  for (const auto& group : groups) order.push_back(&group);
  if (weight) {
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](const auto* group) { return weight(group->second); });
  } else {
    std::ranges::reverse(order);  // The latest ones are kept.
  }
  table.more = order.size() - std::min(order.size(), kRowsMax);
  order.resize(order.size() - table.more);
  if (!weight) std::ranges::reverse(order);
  for (const auto* group : order) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::string& part : group->first) row.push_back({part, {}});
    for (Cell& cell : rest(group->second)) row.push_back(std::move(cell));
  }
  return table;
}

std::vector<Table> Tally::Tables() const {
  using Cells = std::vector<Cell>;
  const auto number = [](auto value) { return Cell{{}, static_cast<double>(value)}; };
  const auto runs = [](const Group& group) { return static_cast<double>(group.runs); };
  const auto succeeded = [&](const Group& group) {
    return number(static_cast<double>(group.succeeded) / runs(group));
  };
  const auto took = [](const Group& group, double share) {
    return Cell{{}, Quantile(group.ms, share)};
  };
  std::vector<Table> tables;
  tables.push_back(Fill(
      {"outcomes", "Outcomes", {{"outcome", "outcome"}, kRuns, {"share", "share", Unit::kShare}}},
      outcomes_, runs, [&](const Group& group) -> Cells {
        return {number(group.runs), number(runs(group) / static_cast<double>(overview_.runs))};
      }));
  const std::vector<Column> work = {{"task", "task"},
                                    {"agent", "agent"},
                                    {"model", "model"},
                                    kRuns,
                                    kSucceeded,
                                    kMedian,
                                    kSlow,
                                    {"tokens", "tokens", Unit::kCount},
                                    kCost,
                                    {"cost_per_run_usd", "per run", Unit::kUsd}};
  const auto most = [&](const Group& group) { return group.cost_usd + 1e-9 * runs(group); };
  tables.push_back(Fill({"work", "Tasks, agents and models", work}, work_, most,
                        [&](const Group& group) -> Cells {
                          return {number(group.runs),
                                  succeeded(group),
                                  took(group, 0.5),
                                  took(group, 0.95),
                                  number(group.tokens),
                                  number(group.cost_usd),
                                  number(group.cost_usd / runs(group))};
                        }));
  const std::vector<Column> failures = {
      {"kind", "kind"}, {"reason", "reason"}, kRuns, {"last_run", "latest", Unit::kUrl}};
  tables.push_back(
      Fill({"failures", "Failures", failures}, failures_, runs, [&](const Group& group) -> Cells {
        return {number(group.runs), {group.last, {}}};
      }));
  const std::vector<Column> denials = {{"host", "host"},
                                       {"allow_line", "would be allowed by"},
                                       kRuns,
                                       {"requests", "requests", Unit::kCount}};
  tables.push_back(Fill({"denials", "Refused requests", denials}, denials_, runs,
                        [&](const Group& group) -> Cells {
                          return {number(group.runs), number(group.requests)};
                        }));
  const std::vector<Column> phases = {
      {"phase", "phase"}, kMedian, kSlow, {"max_ms", "longest", Unit::kMilliseconds}};
  tables.push_back(Fill(
      {"phases", "Phases", phases}, phases_,
      [&](const Group& group) { return took(group, 0.95).number.value_or(0); },
      [&](const Group& group) -> Cells {
        return {took(group, 0.5), took(group, 0.95), took(group, 1)};
      }));
  tables.push_back(Fill({"days", "Days", {{"day", "day"}, kRuns, kSucceeded, kCost}}, days_,
                        nullptr, [&](const Group& group) -> Cells {
                          return {number(group.runs), succeeded(group), number(group.cost_usd)};
                        }));
  return tables;
}

Overview Tally::Take() const {
  Overview overview = overview_;
  overview.tables = Tables();
  return overview;
}

}  // namespace report::stats
