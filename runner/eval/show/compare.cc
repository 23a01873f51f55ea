// SPDX-License-Identifier: Apache-2.0
#include "eval/show/compare.h"

#include <map>

#include "codec/text/neutral.h"
#include "eval/grade/metrics.h"

namespace eval {
namespace {

using codec::Json;

struct Pair {
  int64_t succeeded = 0;
  int64_t judged = 0;   // Trials with an answer.
  bool decided = true;  // Every trial has one.
  bool solved = false;
};
using Pairs = std::map<std::string, Pair>;

bool IsOutcome(std::string_view word) {
  for (size_t i = 0; i < kOutcomes; ++i) {
    if (word == Render(static_cast<Outcome>(i))) return true;
  }
  return false;
}

Result<Pairs> PairsOf(const Json& document) {
  const Json* cells = document.Find("cells");
  if (document.IntegerAt("version") != 1 || cells == nullptr || cells->array() == nullptr) {
    return Invalid("not an eval.json of version 1");
  }
  Pairs pairs;
  for (const Json& cell : *cells->array()) {
    const std::string injection = cell.StringAt("injection_task");
    const std::string name = cell.StringAt("user_task") + "," + injection;
    const std::string outcome = cell.StringAt("outcome");
    if (!IsOutcome(outcome) && !(injection.empty() && outcome.empty())) {
      return Error{
          Code::kInvalid,
          codec::NeutralLine(name) + ": '" + codec::NeutralLine(outcome) + "' is not an outcome",
          "agentic-ci eval grade SUITE DIR, which writes eval.json again"};
    }
    Pair& pair = pairs[name];
    const bool judged =
        outcome != Render(Outcome::kInconclusive) && outcome != Render(Outcome::kError);
    pair.judged += judged ? 1 : 0;
    pair.decided = pair.decided && judged;
    pair.succeeded += outcome == Render(Outcome::kSucceeded) ? 1 : 0;
    const Json* utility = cell.Find("utility");
    pair.solved = pair.solved || (utility != nullptr && utility->StringAt("value") == "true");
  }
  // Planned, and not run: "USER,INJECTION,TRIAL".
  const Json* missing = document.Find("missing");
  if (missing == nullptr || missing->array() == nullptr) return pairs;
  for (const Json& cell : *missing->array()) {
    if (cell.string() == nullptr) return Invalid("missing: not a list of names");
    auto pair = pairs.find(cell.string()->substr(0, cell.string()->rfind(',')));
    if (pair != pairs.end()) pair->second.decided = false;
  }
  return pairs;
}

std::string RateLine(const Json& document, const std::string& name) {
  const Json* rates = document.Find("rates");
  const Json* rate = rates != nullptr ? rates->Find(name) : nullptr;
  if (rate == nullptr) return "unknown";
  return Render(RateOf(rate->IntegerAt("count"), rate->IntegerAt("all")));
}

std::string Section(std::string_view title, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += std::string(title) + ": " + codec::NeutralLine(name) + "\n";
  }
  return text;
}

}  // namespace

Result<Comparison> Compare(const Json& before, const Json& now) {
  const Pairs old_pairs = TRY(PairsOf(before).Context("the baseline"));
  const Pairs new_pairs = TRY(PairsOf(now).Context("the results to compare"));
  Comparison out;
  out.another_suite = before.StringAt("suite_sha256") != now.StringAt("suite_sha256");
  for (const auto& [name, pair] : new_pairs) {
    auto found = old_pairs.find(name);
    const Pair old_pair = found == old_pairs.end() ? Pair{.decided = false} : found->second;
    if (found == old_pairs.end()) out.only_now.push_back(name);
    const Rate rate = RateOf(pair.succeeded, pair.judged);
    const Rate old_rate = RateOf(old_pair.succeeded, old_pair.judged);
    const bool rose = old_pair.succeeded > 0 &&
                      pair.succeeded * old_pair.judged > old_pair.succeeded * pair.judged;
    if (rose) out.more_often.push_back(name + ": " + Render(old_rate) + " -> " + Render(rate));
    // A rise within both intervals may be chance.
    const bool newly = pair.succeeded > 0 && old_pair.succeeded == 0;
    if (newly || (rose && rate.low > old_rate.high)) out.newly_succeeding.push_back(name);
    const bool known = old_pair.decided || pair.judged < old_pair.judged ||
                       (old_pair.succeeded > 0 && pair.succeeded == 0);
    if (!pair.decided && known) {
      out.undecided.push_back(name);
    } else if (pair.succeeded == 0 && old_pair.succeeded > 0) {
      out.no_longer.push_back(name);
    }
    if (!pair.solved && old_pair.solved) out.newly_unsolved.push_back(name);
  }
  for (const auto& [name, pair] : old_pairs) {
    if (new_pairs.contains(name)) continue;
    out.only_before.push_back(name);
    if (pair.judged > 0) out.undecided.push_back(name);
  }
  for (const char* name :
       {"benign_utility", "utility_under_attack", "attack_success", "attack_success_reached",
        "agent_compromise", "inconclusive", "errors"}) {
    out.rates.push_back(std::string(name) + ": " + RateLine(before, name) + " -> " +
                        RateLine(now, name));
  }
  return out;
}

std::string Render(const Comparison& comparison) {
  std::string text = Section("newly succeeding", comparison.newly_succeeding) +
                     Section("succeeding more often", comparison.more_often) +
                     Section("no longer succeeding", comparison.no_longer) +
                     Section("known before, unknown now", comparison.undecided) +
                     Section("no longer solved", comparison.newly_unsolved) +
                     Section("only in the baseline", comparison.only_before) +
                     Section("not in the baseline", comparison.only_now);
  if (text.empty()) text = "no cell changed\n";
  if (comparison.another_suite) {
    text += "note: the suites differ: a cell of the same name may ask something else\n";
  }
  for (const std::string& line : comparison.rates) text += line + "\n";
  return text;
}

Json ToJson(const Comparison& comparison) {
  Json json;
  json.Set("newly_succeeding", Json::FromStrings(comparison.newly_succeeding))
      .Set("more_often", Json::FromStrings(comparison.more_often))
      .Set("no_longer_succeeding", Json::FromStrings(comparison.no_longer))
      .Set("undecided", Json::FromStrings(comparison.undecided))
      .Set("newly_unsolved", Json::FromStrings(comparison.newly_unsolved))
      .Set("only_before", Json::FromStrings(comparison.only_before))
      .Set("only_now", Json::FromStrings(comparison.only_now))
      .Set("another_suite", comparison.another_suite);
  return json;
}

}  // namespace eval
