// SPDX-License-Identifier: Apache-2.0
#include "eval/show/compare.h"

#include <map>

#include "codec/text/neutral.h"
#include "eval/grade/metrics.h"

namespace eval {
namespace {

using codec::Json;

struct Pair {
  bool succeeded = false;
  bool decided = true;  // Every trial has an answer.
  bool solved = false;
};

Result<std::map<std::string, Pair>> PairsOf(const Json& document) {
  const Json* cells = document.Find("cells");
  if (document.IntegerAt("version") != 1 || cells == nullptr || cells->array() == nullptr) {
    return Invalid("not an eval.json of version 1");
  }
  std::map<std::string, Pair> pairs;
  for (const Json& cell : *cells->array()) {
    Pair& pair = pairs[cell.StringAt("user_task") + "," + cell.StringAt("injection_task")];
    std::string outcome = cell.StringAt("outcome");
    pair.succeeded = pair.succeeded || outcome == "succeeded";
    pair.decided = pair.decided && outcome != "inconclusive" && outcome != "error";
    const Json* utility = cell.Find("utility");
    pair.solved = pair.solved || (utility != nullptr && utility->StringAt("value") == "true");
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
  std::map<std::string, Pair> old_pairs = TRY(PairsOf(before));
  std::map<std::string, Pair> new_pairs = TRY(PairsOf(now));
  Comparison out;
  for (const auto& [name, pair] : new_pairs) {
    auto found = old_pairs.find(name);
    const Pair old_pair = found == old_pairs.end() ? Pair{.decided = false} : found->second;
    if (found == old_pairs.end()) out.only_now.push_back(name);
    if (pair.succeeded && !old_pair.succeeded) out.newly_succeeding.push_back(name);
    if (!pair.succeeded && !pair.decided && (old_pair.succeeded || old_pair.decided)) {
      out.undecided.push_back(name);
    } else if (!pair.succeeded && old_pair.succeeded) {
      out.no_longer.push_back(name);
    }
    if (!pair.solved && old_pair.solved) out.newly_unsolved.push_back(name);
  }
  for (const auto& [name, pair] : old_pairs) {
    if (!new_pairs.contains(name)) out.only_before.push_back(name);
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
                     Section("no longer succeeding", comparison.no_longer) +
                     Section("known before, unknown now", comparison.undecided) +
                     Section("no longer solved", comparison.newly_unsolved) +
                     Section("only in the baseline", comparison.only_before) +
                     Section("not in the baseline", comparison.only_now);
  if (text.empty()) text = "no cell changed\n";
  for (const std::string& line : comparison.rates) text += line + "\n";
  return text;
}

Json ToJson(const Comparison& comparison) {
  Json json;
  json.Set("newly_succeeding", Json::FromStrings(comparison.newly_succeeding))
      .Set("no_longer_succeeding", Json::FromStrings(comparison.no_longer))
      .Set("undecided", Json::FromStrings(comparison.undecided))
      .Set("newly_unsolved", Json::FromStrings(comparison.newly_unsolved))
      .Set("only_before", Json::FromStrings(comparison.only_before))
      .Set("only_now", Json::FromStrings(comparison.only_now));
  return json;
}

}  // namespace eval
