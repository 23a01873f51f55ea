// SPDX-License-Identifier: Apache-2.0
// The verdict on a run, which a person must know first: how it ended, why, and what can be done
// about it. The page, the comment and the terminal say it in the same words. Plain text: paths and
// reasons are from outside, so each rendering still neutralises.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/record.h"

namespace report {

// Returns whether the agent's work is whole, and its changes may be applied and delivered: after a
// success, and where only its findings fail the run.
constexpr bool Succeeded(OutcomeKind kind) {
  return kind == OutcomeKind::kSuccess || kind == OutcomeKind::kFindings;
}

// One thing that decided the outcome, or that a person should look at although it did not.
struct Cause {
  std::string what;    // "an AWS access key id, AKIA..., 20 characters"
  std::string advice;  // A remedy for a person; may be empty.
  int finding = -1;    // Its index in RunRecord::findings; -1 if it is not a finding.
  bool decided = false;
};

// Returns whether a budget of tokens, cost or requests ended the run: its agent has done some work.
bool EndedByBudget(const OutcomeRecord& outcome);

// The tone of a run: nothing to do, something to look at, or no result.
enum class Tone { kGood, kWarn, kBad };
Tone ToneOf(const RunRecord& record);

// Returns what stands before the badge and needs no colour: ✅ ❌ ⛔ ⏱, and ⚠ where a person should
// look at something.
std::string_view Sign(const RunRecord& record);
// Returns which of several runs on one commit this is: "review", "review, node: 20"; empty for one
// without a task outside of a matrix. Not neutral.
std::string NameOfRun(const RunRecord& record);
// Returns one word or two: "Refused", "Failed", "Done", "Time limit", ...
std::string Badge(const OutcomeRecord& outcome);
// Returns what happened, without the badge: "2 protected paths and 1 secret in the patch. Nothing
// was applied." "1 error. 4 files changed (+18 −3). 3 requests refused."
std::string VerdictLine(const RunRecord& record);
// The functions that VerdictPlaces passes text from outside through.
struct Quoting {
  std::function<std::string(std::string_view)> place;
  std::function<std::string(std::string_view)> text;
};
// Returns the same with the places: "secret config.env:2, protected path ci.yml. Nothing was
// applied." `quoting` is applied to text from outside; the rest is this program's.
std::string VerdictPlaces(const RunRecord& record, const Quoting& quoting);
// Returns at most `causes_max` causes: those that decided, findings in their order; then limits
// that were reached, incomplete changes.
std::vector<Cause> Causes(const RunRecord& record, size_t causes_max);

// Returns what a person can do about findings of a gate's rule; empty for rules that are not known.
std::string_view AdviceFor(std::string_view rule);

// Returns "1 error, 2 warnings" of all findings; empty without one.
std::string CountFindings(const std::vector<Finding>& findings);

// Returns at most three of the agent's findings, the worst first. Borrows them.
std::vector<const Finding*> WorstFindings(const RunRecord& record);

// Returns the hosts whose requests were refused, each once, at most three of them by name:
// "a.example, b.example, c.example and 2 more hosts"; empty without one. `quote` is applied to
// each.
std::string ListRefusedHosts(const RunRecord& record,
                             const std::function<std::string(std::string_view)>& quote);

// Returns "src/a.c:3", "src/a.c", or nothing.
std::string PlaceOf(const Finding& finding);
// Describes a policy briefly: "main@6d05064", "policy.yml", "built-in default".
std::string ShortPolicy(const PolicyRecord& policy);
// Returns "11 of 11 controls".
std::string DescribeControls(const IsolationRecord& isolation);
int64_t CountEnforced(const IsolationRecord& isolation);

}  // namespace report
