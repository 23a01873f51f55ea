// SPDX-License-Identifier: Apache-2.0
#include "attest/expectations.h"

#include <algorithm>
#include <array>
#include <optional>

#include "codec/data/yaml_fields.h"
#include "codec/glob/glob.h"
#include "codec/text/hex.h"
#include "codec/text/quantity.h"
#include "report/record_names.h"
#include "sandbox/limit/control.h"

namespace attest {
namespace {

using codec::Json;
using Texts = std::vector<std::string>;

constexpr std::string_view kOutcome = "outcome";
constexpr std::string_view kIncomplete = "allow-incomplete";

std::string Quoted(const std::string& text) { return text.empty() ? "nothing" : "'" + text + "'"; }

std::string List(const Texts& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

// One of `wanted` is the text at `path`.
std::string JudgeEqual(const Statement& statement, const char* path, const Texts& wanted) {
  const std::string stated = statement.TextAt(path);
  if (std::find(wanted.begin(), wanted.end(), stated) != wanted.end() && !stated.empty()) return {};
  return Quoted(stated) + " is stated, expected: " + List(wanted);
}

// One of the globs `wanted` matches the text at `path`.
std::string JudgeGlob(const Statement& statement, const char* path, const Texts& wanted) {
  const std::string stated = statement.TextAt(path);
  for (const std::string& glob : wanted) {
    const Result<codec::Glob> parsed = codec::Glob::Parse(glob, '/');
    if (!stated.empty() && parsed.ok() && parsed.value().Matches(stated)) return {};
  }
  return Quoted(stated) + " is stated, expected: " + List(wanted);
}

// The tiers of agentic-ci's own sandbox, the weaker one first.
constexpr std::array<std::string_view, 2> kTiers = {"landlock", "namespaces"};

Status CheckTier(std::string_view text) {
  if (std::find(kTiers.begin(), kTiers.end(), text) != kTiers.end()) return Ok();
  return Error{Code::kInvalid, "'" + std::string(text) + "' is not a tier", "namespaces"};
}

std::string JudgeTier(const Statement& statement, const Texts& wanted) {
  const std::string stated = statement.TextAt("isolation.tier");
  const auto* there = std::find(kTiers.begin(), kTiers.end(), stated);
  const auto* least = std::find(kTiers.begin(), kTiers.end(), wanted.back());
  if (there != kTiers.end() && there >= least) return {};
  return Quoted(stated) + " is stated, expected at least: " + wanted.back();
}

Status CheckControl(std::string_view text) {
  for (const auto& row : sandbox::kControls) {
    if (row.text == text) return Ok();
  }
  return Error{Code::kInvalid, "'" + std::string(text) + "' is not a control", "network"};
}

std::string JudgeControls(const Statement& statement, const Texts& wanted) {
  const Json* controls = statement.Find("isolation.controls");
  std::string unmet;
  for (const std::string& name : wanted) {
    const std::string state = controls == nullptr ? "" : controls->StringAt(name);
    if (state == report::Render(report::ControlState::kEnforced)) continue;
    unmet += (unmet.empty() ? "" : ", ") + name + " is " + (state.empty() ? "not stated" : state);
  }
  return unmet;
}

Status CheckGlob(std::string_view text) {
  Result<codec::Glob> parsed = codec::Glob::Parse(text, '/');
  return parsed.ok() ? Ok() : Status(std::move(parsed).error());
}

Status CheckDigest(std::string_view text) {
  if (text.size() == 64 && codec::IsHex(text)) return Ok();
  return Error{Code::kInvalid, "'" + std::string(text) + "' is not a SHA-256 in lower-case digits"};
}

std::string JudgePolicy(const Statement& statement, const Texts& wanted) {
  const Json* replaced = statement.Find("policy.replaced");
  if (replaced == nullptr || replaced->integer() != 0) return "it was replaced during the run";
  return JudgeEqual(statement, "policy.sha256", wanted);
}

std::string JudgeChecks(const Statement& statement, const Texts&) {
  const Json* checks = statement.Find("checks");
  if (checks == nullptr || checks->array() == nullptr || checks->array()->empty()) {
    return "no check was run";
  }
  for (const Json& check : *checks->array()) {
    const std::string outcome = check.StringAt("outcome");
    if (outcome != report::Render(report::OutcomeKind::kSuccess)) {
      return "the check " + Quoted(check.StringAt("command")) + " ended as " + Quoted(outcome);
    }
  }
  return {};
}

Status CheckCost(std::string_view text) {
  Result<double> dollars = codec::ParseDollars(text);
  return dollars.ok() ? Ok() : Status(std::move(dollars).error());
}

std::string JudgeCost(const Statement& statement, const Texts& wanted) {
  // The agent's own figure is its word.
  if (!statement.TextAt("usage.costSource").starts_with("gateway")) {
    return "the gateway did not count the cost";
  }
  const Json* cost = statement.Find("usage.costUsd");
  const std::optional<double> stated = cost == nullptr ? std::nullopt : cost->number();
  if (!stated) return "the cost is not known";
  const Result<double> most = codec::ParseDollars(wanted.back());
  if (most.ok() && *stated <= most.value()) return {};
  return "$" + std::to_string(*stated) + " is stated, expected at most: $" + wanted.back();
}

std::string JudgeCredentials(const Statement& statement, const Texts&) {
  const Json* refused = statement.Find("credentials.refusedUses");
  const std::optional<int64_t> count = refused == nullptr ? std::nullopt : refused->integer();
  if (count == 0) return {};
  return count ? std::to_string(*count) + " requests would have taken a credential elsewhere"
               : "it is not stated";
}

Status CheckOutcome(std::string_view text) {
  report::OutcomeKind kind = report::OutcomeKind::kSuccess;
  if (report::ParseName(report::kOutcomeNames, text, &kind)) return Ok();
  return Error{Code::kInvalid, "'" + std::string(text) + "' is not an outcome", "success"};
}

std::string JudgeOutcome(const Statement& statement, const Texts& wanted) {
  return JudgeEqual(statement, "run.outcome.kind", wanted);
}

constexpr auto kExpectations = std::to_array<Expectation>({
    {kOutcome, "KIND", "How the run may have ended; `success` if not given.", true, CheckOutcome,
     JudgeOutcome},
    {kIncomplete, "", "The records of the run need not be whole.", false, nullptr, nullptr},
    {"repository", "NAME", "The repository that the run was for: `owner/name`.", true, nullptr,
     [](const Statement& statement, const Texts& wanted) {
       return JudgeEqual(statement, "source.repository", wanted);
     }},
    {"head", "SHA", "The commit that was checked out for the agent.", true, nullptr,
     [](const Statement& statement, const Texts& wanted) {
       return JudgeEqual(statement, "source.checkoutCommit", wanted);
     }},
    {"tier", "TIER", "The tier of isolation, or a stronger one: `namespaces`, `landlock`.", false,
     CheckTier, JudgeTier},
    {"control", "NAME", "A control that was enforced, not emulated.", true, CheckControl,
     JudgeControls},
    {"policy-digest", "DIGEST", "The SHA-256 of the policy file that was in force.", true,
     CheckDigest, JudgePolicy},
    {"checks-passed", "", "The task's checks were run, and passed.", false, nullptr, JudgeChecks},
    {"max-cost", "DOLLARS", "What models may have cost. A cost that is not known does not count.",
     false, CheckCost, JudgeCost},
    {"no-refused-credentials", "",
     "No request would have taken a credential to a host that it is not for.", false, nullptr,
     JudgeCredentials},
    {"agent", "NAME", "The agent that ran.", true, nullptr,
     [](const Statement& statement, const Texts& wanted) {
       return JudgeEqual(statement, "agent.name", wanted);
     }},
    {"model", "GLOB", "The model that it used.", true, CheckGlob,
     [](const Statement& statement, const Texts& wanted) {
       const Json* seen = statement.Find("agent.modelSeen");
       if (seen == nullptr || seen->boolean() != true) {
         return std::string("the gateway saw no model");
       }
       return JudgeGlob(statement, "agent.model", wanted);
     }},
    {"image", "DIGEST", "The digest of the image that the agent ran in: `sha256:...`.", true,
     nullptr,
     [](const Statement& statement, const Texts& wanted) {
       return JudgeEqual(statement, "image.digest", wanted);
     }},
    {"runner-digest", "DIGEST", "The SHA-256 of the `agentic-ci` that ran.", true, CheckDigest,
     [](const Statement& statement, const Texts& wanted) {
       return JudgeEqual(statement, "runner.sha256", wanted);
     }},
});

std::string KeyOf(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

std::span<const Expectation> Expectations() { return kExpectations; }

std::vector<Unmet> Judge(const Statement& statement, const Wishes& wishes) {
  std::vector<Unmet> unmet;
  const Texts success = {report::Render(report::OutcomeKind::kSuccess)};
  for (const Expectation& expectation : kExpectations) {
    const auto wished = wishes.find(expectation.name);
    const bool given = wished != wishes.end() && !wished->second.empty();
    if (expectation.judge == nullptr || (!given && expectation.name != kOutcome)) continue;
    std::string why = expectation.judge(statement, given ? wished->second : success);
    if (!why.empty()) unmet.push_back({std::string(expectation.name), std::move(why)});
  }
  const Json* complete = statement.Find("complete");
  const Json* missing = statement.Find("missing");
  const bool whole = complete != nullptr && complete->boolean() == true && missing != nullptr &&
                     missing->array() != nullptr && missing->array()->empty();
  if (!whole && !wishes.contains(kIncomplete)) {
    unmet.push_back({"complete", "records of the run are not whole"});
  }
  return unmet;
}

Result<Wishes> ParseWishes(const std::string& file, std::string_view text,
                           const std::vector<std::string_view>& keys) {
  const codec::YamlNode root = TRY(codec::ParseYaml(text, file));
  std::vector<std::string> names;
  for (const Expectation& expectation : kExpectations) names.push_back(KeyOf(expectation.name));
  std::vector<std::string_view> known = {names.begin(), names.end()};
  known.insert(known.end(), keys.begin(), keys.end());
  const codec::YamlFields fields =
      TRY(codec::YamlFields::Open(file, root, "the expectations", known));
  Wishes wishes;
  for (std::string_view key : keys) {
    if (fields.Find(key) != nullptr) wishes[std::string(key)] = {TRY(fields.RequiredText(key))};
  }
  for (const Expectation& expectation : kExpectations) {
    const std::string key = KeyOf(expectation.name);
    const codec::YamlNode* node = fields.Find(key);
    if (node == nullptr) continue;
    Texts texts;
    if (expectation.value.empty()) {
      if (TRY(fields.Boolean(key, false))) texts = {"true"};
    } else if (expectation.repeatable && node->kind == codec::YamlKind::kSequence) {
      texts = TRY(fields.FilledTexts(key));
      if (texts.empty()) return fields.Invalid(key, "an empty list would expect nothing");
    } else {
      texts = {TRY(fields.RequiredText(key))};
    }
    for (const std::string& one : texts) {
      Status good = expectation.check == nullptr ? Ok() : expectation.check(one);
      if (!good.ok()) return fields.Invalid(key, good.error().what, good.error().hint);
    }
    if (!texts.empty()) wishes[std::string(expectation.name)] = std::move(texts);
  }
  return wishes;
}

}  // namespace attest
