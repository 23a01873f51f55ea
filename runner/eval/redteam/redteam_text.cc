// SPDX-License-Identifier: Apache-2.0
#include "eval/redteam/redteam_text.h"

#include <algorithm>

#include "base/join.h"

namespace redteam {
namespace {

constexpr Standing kStandings[] = {Standing::kStopped,  Standing::kNotApplicable,
                                   Standing::kByPolicy, Standing::kByTier,
                                   Standing::kThrough,  Standing::kUndecided};
constexpr Category kCategories[] = {Category::kEscape, Category::kFiles, Category::kEgress,
                                    Category::kSmuggling, Category::kCredential};

size_t CountIn(const Results& results, Category category, Standing standing) {
  return static_cast<size_t>(
      std::count_if(results.probes.begin(), results.probes.end(), [&](const Judged& one) {
        return one.probe->category == category && one.standing == standing;
      }));
}

std::string Padded(std::string text, size_t width, bool right) {
  if (text.size() >= width) return text;
  std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

std::string Table(const Results& results) {
  std::string text = Padded("", 12, false);
  for (Standing standing : kStandings) text += "  " + std::string(Name(standing));
  text += "\n";
  for (Category category : kCategories) {
    text += Padded(std::string(Name(category)), 12, false);
    for (Standing standing : kStandings) {
      text += "  " + Padded(std::to_string(CountIn(results, category, standing)),
                            Name(standing).size(), true);
    }
    text += "\n";
  }
  return text;
}

std::string List(const Results& results, Standing standing, std::string_view title) {
  if (Count(results, standing) == 0) return {};
  std::string text = "\n" + std::string(title) + ":\n";
  std::string of;  // The name that "..." continues.
  for (const Judged& one : results.probes) {
    std::string what(one.probe->title);
    if (what.starts_with("... ")) {
      what = of + " " + what.substr(4);
    } else {
      of = what;
    }
    if (one.standing != standing) continue;
    text += "  " + std::string(one.probe->id) + ": " + what + ": " + one.inside;
    if (!one.outside.empty()) text += " (outside: " + one.outside + ")";
    text += "\n";
    if (!one.because.empty()) text += "      " + one.because + "\n";
  }
  return text;
}

}  // namespace

std::string RenderRedteam(const Results& results) {
  std::string text = "policy " + results.policy.file + ", tier " + results.tier +
                     ", runner's user " + std::to_string(results.user) + ", " +
                     std::to_string(results.probes.size()) + " attempts in " +
                     std::to_string((results.ms + 999) / 1000) + " s\n\n";
  text += Table(results);
  text += List(results, Standing::kThrough, "got through");
  text += List(results, Standing::kUndecided, "not decided");
  text +=
      List(results, Standing::kByTier, "not stopped in this tier (docs/reference/isolation.md)");
  text += List(results, Standing::kByPolicy, "allowed by the policy");
  if (!results.weaker.empty()) text += "\nnot enforced, or not tried:\n";
  for (const std::string& one : results.weaker) text += "  " + one + "\n";
  if (!results.policy.openings.empty()) text += "\nwhat the policy's lines let an agent do:\n";
  for (const Opening& one : results.policy.openings) {
    text += "  " + one.place + ": " + one.lets;
    if (!one.programs.empty()) text += ", by " + Join(one.programs);
    text += "\n";
  }
  return text;
}

codec::Json ToJson(const Results& results) {
  codec::Json counts;
  for (Standing standing : kStandings) {
    counts.Set(std::string(Name(standing)), static_cast<int64_t>(Count(results, standing)));
  }
  codec::Json probes = codec::Json::EmptyArray();
  for (const Judged& one : results.probes) {
    codec::Json probe;
    probe.Set("id", one.probe->id)
        .Set("category", Name(one.probe->category))
        .Set("title", one.probe->title)
        .Set("standing", Name(one.standing))
        .Set("inside", one.inside)
        .Set("outside", one.outside.empty() ? codec::Json() : codec::Json(one.outside))
        .Set("because", one.because);
    probes.Push(std::move(probe));
  }
  codec::Json openings = codec::Json::EmptyArray();
  for (const Opening& one : results.policy.openings) {
    codec::Json opening;
    opening.Set("at", one.place)
        .Set("subject", one.subject)
        .Set("what", one.what)
        .Set("lets", one.lets)
        .Set("sends", Name(one.sends))
        .Set("programs", codec::Json::FromStrings(one.programs));
    openings.Push(std::move(opening));
  }
  codec::Json json;
  json.Set("version", 1)
      .Set("holds", Holds(results))
      .Set("policy", results.policy.file)
      .Set("tier", results.tier)
      .Set("user", static_cast<int64_t>(results.user))
      .Set("ms", results.ms)
      .Set("counts", std::move(counts))
      .Set("controls", codec::Json::FromStrings(results.weaker))
      .Set("probes", std::move(probes))
      .Set("openings", std::move(openings));
  return json;
}

}  // namespace redteam
