// SPDX-License-Identifier: Apache-2.0
#include "advise/nearest_rule.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "codec/wire/http_head.h"
#include "policy/decide/compiled_tables.h"
#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"

namespace advise {
namespace {

size_t SharedBeginning(std::string_view a, std::string_view b) {
  size_t shared = 0;
  while (shared < a.size() && shared < b.size() && a[shared] == b[shared]) ++shared;
  return shared;
}

constexpr size_t kSameHost = 1000;  // More than a name has labels.

// Counts the whole labels that two names share at their ends.
size_t SharedLabels(std::string_view a, std::string_view b) {
  size_t labels = 0;
  while (!a.empty() && !b.empty()) {
    size_t dot_a = a.rfind('.');
    size_t dot_b = b.rfind('.');
    std::string_view label_a = a.substr(dot_a == std::string_view::npos ? 0 : dot_a + 1);
    std::string_view label_b = b.substr(dot_b == std::string_view::npos ? 0 : dot_b + 1);
    if (label_a != label_b) break;
    ++labels;
    a = a.substr(0, dot_a == std::string_view::npos ? 0 : dot_a);
    b = b.substr(0, dot_b == std::string_view::npos ? 0 : dot_b);
  }
  return labels;
}

// The nearness of a rule; more is nearer. The first number counts what matches.
using Score = std::tuple<int, size_t>;

Score ScoreHead(const policy::HttpRule& rule, const policy::HttpRequest& request) {
  bool path = rule.path == "**" || codec::GlobMatches(rule.path, request.path, '/');
  bool method = rule.method == "*" || codec::EqualIgnoringCase(rule.method, request.method);
  size_t beginning = path ? request.path.size() : SharedBeginning(rule.path, request.path);
  return {(path ? 2 : 0) + (method ? 1 : 0), beginning};
}

// Operations differ mostly in their type; a rule for that type is the one to be widened.
Score ScoreOperations(const policy::HttpRule& rule,
                      std::span<const codec::GraphqlOperation> operations) {
  Score best;
  for (const codec::GraphqlOperation& operation : operations) {
    bool type =
        rule.operation_type == "*" || codec::EqualIgnoringCase(rule.operation_type, operation.type);
    size_t name = SharedBeginning(rule.operation_name, operation.name);
    best = std::max(best, Score{type ? 2 : 0, name});
  }
  return best;
}

Score ScoreCalls(const policy::HttpRule& rule, std::span<const codec::JsonRpcCall> calls) {
  Score best;
  for (const codec::JsonRpcCall& call : calls) {
    bool method = codec::GlobMatches(rule.method, call.method, '.');
    size_t beginning =
        method ? SharedBeginning(rule.tool, call.tool) : SharedBeginning(rule.method, call.method);
    best = std::max(best, Score{method ? 2 : 0, beginning});
  }
  return best;
}

Score ScoreRule(const policy::HttpRule& rule, const Wanted& wanted) {
  if (!rule.operation_type.empty()) return ScoreOperations(rule, wanted.operations);
  if (!wanted.calls.empty() && rule.path.empty()) return ScoreCalls(rule, wanted.calls);
  return rule.path.empty() ? Score{} : ScoreHead(rule, wanted.request);
}

std::string DescribeRule(const policy::HttpRule& rule) {
  std::string text;
  auto add = [&](std::string_view part) {
    if (part.empty()) return;
    if (!text.empty()) text += " ";
    text += part;
  };
  add(rule.operation_type);
  add(rule.operation_name);
  add(rule.method);
  add(rule.path);
  add(rule.tool);
  add(rule.command);
  for (const std::string& field : rule.fields) add(field);
  for (const policy::QueryMatcher& query : rule.query) add("?" + query.key + "=...");
  return text;
}

std::string DescribeEndpoint(const Nearest& nearest) {
  const policy::Endpoint& endpoint = *nearest.endpoint;
  std::string text = endpoint.host.empty() ? "any host" : endpoint.host;
  if (!endpoint.ports.empty()) text += ":" + std::to_string(endpoint.ports.front());
  const std::vector<std::string>& binaries = nearest.policy->binaries;
  if (binaries.empty()) return text + " for no program";
  text += " for " + binaries.front();
  return binaries.size() > 1 ? text + " and others" : text;
}

}  // namespace

Nearest FindNearestRule(const policy::Route& route, const Wanted& wanted) {
  Nearest nearest;
  Score best{-1, 0};
  for (const policy::CompiledEndpoint* endpoint : route.judging()) {
    // An endpoint that does not take the path comes near with its beginning alone.
    bool selected = endpoint->selector.Matches(wanted.request.path);
    for (const policy::HttpRule& rule : endpoint->source->rules) {
      Score score = ScoreRule(rule, wanted);
      if (!selected) {
        score = {-1, SharedBeginning(endpoint->source->path, wanted.request.path)};
      }
      if (score <= best) continue;
      best = score;
      nearest = {endpoint->policy, endpoint->source, &rule};
    }
  }
  return nearest;
}

Nearest FindNearestEndpoint(const policy::CompiledPolicy& policy, const policy::Route& route) {
  Nearest nearest;
  size_t best = 1;
  bool literal = policy::ParseAddress(route.host()).has_value();  // Its parts are not DNS labels.
  for (const policy::NetworkPolicy& network : policy.source().network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      size_t score = literal ? 0 : SharedLabels(endpoint.host, route.host());
      if (!endpoint.host.empty() && policy::HostMatches(endpoint.host, route.host()))
        score = kSameHost;
      bool port = std::find(endpoint.ports.begin(), endpoint.ports.end(), route.port()) !=
                  endpoint.ports.end();
      if (score == kSameHost && port) ++score;
      if (score <= best) continue;
      best = score;
      nearest = {&network, &endpoint, nullptr};
    }
  }
  return nearest;
}

std::string RenderNearest(const Nearest& nearest, const std::string& file) {
  if (nearest.endpoint == nullptr) return {};
  const codec::Position at = nearest.rule != nullptr ? nearest.rule->at : nearest.endpoint->at;
  std::string where =
      at.line > 0 ? codec::Locate(file, at) : "policy '" + nearest.policy->name + "'";
  return "nearest rule: " + where + " allows " +
         (nearest.rule != nullptr ? DescribeRule(*nearest.rule) : DescribeEndpoint(nearest));
}

std::string RenderHint(const policy::CompiledPolicy& policy, const policy::Route& route,
                       const policy::Verdict& verdict, const Wanted& wanted,
                       const std::string& file) {
  if (verdict.reason == policy::Reason::kAllowed) return {};
  if (!route.connection().allowed) {
    return RenderNearest(FindNearestEndpoint(policy, route), file);
  }
  if (verdict.rule == nullptr) return RenderNearest(FindNearestRule(route, wanted), file);
  std::string where = verdict.rule->at.line > 0
                          ? codec::Locate(file, verdict.rule->at)
                          : "policy '" + std::string(verdict.policy_name()) + "'";
  return "denied by " + where + ": " + DescribeRule(*verdict.rule);
}

}  // namespace advise
