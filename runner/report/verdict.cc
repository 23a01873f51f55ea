// SPDX-License-Identifier: Apache-2.0
#include "report/verdict.h"

#include <algorithm>
#include <array>
#include <set>

#include "report/findings.h"
#include "report/wording.h"
#include "sandbox/limit/limit.h"

namespace report {
namespace {

// The words for findings of a gate's rule in a sentence, and a remedy for them.
struct RuleWords {
  std::string_view rule;
  std::string_view noun;
  std::string_view advice;
};
constexpr std::array<RuleWords, 4> kRuleWords = {{
    {"secrets", "secret", "Remove it from the changes, and revoke it if it is real."},
    {"protected-paths", "protected path",
     "Only people may change such files: if the change is correct, apply that part of "
     "changes.patch by hand."},
    {"size", "exceeded size limit",
     "Give the agent a smaller task, or review changes.patch by hand."},
    {"egress-denied", "refused request",
     "If the agent needs this access, add the endpoint line or rules named in the message to the "
     "policy; policy-suggestion.yml in the report contains them."},
}};

const RuleWords* WordsOf(std::string_view rule) {
  for (const RuleWords& known : kRuleWords) {
    if (known.rule == rule) return &known;
  }
  return nullptr;
}

// The option that sets a limit of that name in run.json; empty if there is none.
std::string OptionOf(std::string_view limit) {
  const sandbox::LimitRow* row = sandbox::FindLimit(limit, &sandbox::LimitRow::record);
  return row == nullptr || row->option.empty() ? "" : "--" + std::string(row->option);
}

// The words for a run with this outcome, and a remedy for it.
struct OutcomeWords {
  std::string_view sign;
  std::string_view badge;     // The badge; for kLimit, the limit's name is put in front.
  std::string_view sentence;  // If the run has no reason of its own; likewise.
  std::string_view advice = {};
};

OutcomeWords WordsOf(OutcomeKind kind) {
  constexpr std::string_view kSeeMachine = "See the machine's own log: agentic-ci did not end it.";
  switch (kind) {
    case OutcomeKind::kSuccess:
      return {"✅", "Done", "Done"};
    case OutcomeKind::kAgentFailed:
      return {"❌", "Failed", "The agent failed",
              "The end of its log is below; the whole of it is in agent.log."};
    case OutcomeKind::kTimedOut:
      return {"⏱️", "Time limit", "The time limit ended the run",
              "Give it a smaller task, or more time: --timeout."};
    case OutcomeKind::kIdle:
      return {"⏱️", "Idle limit", "The idle limit ended the run",
              "The end of its log says what it waited for; or allow a longer silence: "
              "--idle-timeout."};
    case OutcomeKind::kLimit:
      return {"⏱️", " limit", " limit ended the run"};
    case OutcomeKind::kRefused:
      return {"⛔", "Refused", "Refused"};
    case OutcomeKind::kUntrusted:
      return {"⛔", "Not started", "The run was not allowed to start"};
    case OutcomeKind::kSkipped:
      return {"⏭️", "Skipped", "Nothing to do"};
    case OutcomeKind::kBudget:
      return {"⛔", "Not started", "No budget is left for this run",
              "Wait until there is one, or change `budget` in .agentic-ci/config.yml."};
    case OutcomeKind::kFindings:
      return {"❌", "Findings", "The findings do not pass",
              "Mend what they name, or change `fail_on` of the task."};
    case OutcomeKind::kInterrupted:
      return {"⚠️", "Interrupted", "Interrupted"};
    case OutcomeKind::kTerminated:
      return {"⚠️", "Terminated", "Terminated"};
    case OutcomeKind::kSandboxLost:
      return {"❌", "Failed", "The sandbox was killed", kSeeMachine};
    case OutcomeKind::kGatewayLost:
      return {"❌", "Failed", "The gateway exited unexpectedly", kSeeMachine};
    case OutcomeKind::kSetupFailed:
      return {"❌", "Not started", "The run did not start"};
    case OutcomeKind::kCredentialRefused:
      return {"❌", "Credential rejected", "The model rejected the credential",
              "Renew the credential in the CI's secrets."};
  }
  ENSURE(false);
  return {};
}

// "resource" where the record does not say which; empty unless a limit ended the run.
std::string LimitName(const OutcomeRecord& outcome) {
  if (outcome.kind != OutcomeKind::kLimit) return {};
  return outcome.limit.empty() ? "resource" : outcome.limit;
}

std::string AdviceFor(const OutcomeRecord& outcome) {
  if (outcome.kind != OutcomeKind::kLimit) return std::string(WordsOf(outcome.kind).advice);
  {
    const std::string option = OptionOf(outcome.limit);
    return "Give it a smaller task" +
           (option.empty() ? "." : ", or raise the limit: " + option + ".");
  }
}

// Returns what became of the changes of a run that did not succeed.
std::string Unapplied(const RunRecord& record) {
  return record.changes.files > 0 && !record.changes.applied ? " Nothing was applied." : "";
}

// "2 secrets and 1 protected path", rules in the order of their first finding.
std::string CountRefusing(const std::vector<Finding>& findings) {
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const Finding& finding : findings) {
    if (!finding.refuses) continue;
    const auto same = [&](const auto& count) { return count.first == finding.rule; };
    const auto found = std::find_if(counts.begin(), counts.end(), same);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace_back(finding.rule, 1);
    }
  }
  constexpr size_t kRulesMax = 4;
  std::string out;
  for (size_t i = 0; i < std::min(counts.size(), kRulesMax); ++i) {
    if (i > 0) out += i + 1 == counts.size() ? " and " : ", ";
    const auto& [rule, count] = counts[i];
    out += WordsOf(rule) != nullptr
               ? Plural(count, WordsOf(rule)->noun)
               : HumanCount(count) + (count == 1 ? " finding of " : " findings of ") + rule;
  }
  return out;
}

std::string Capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string Sentence(const std::string& text) {
  if (text.empty()) return {};
  return Capital(text) + (text.back() == '.' ? "" : ".");
}

// Names the hosts that an agent was refused before it failed, since they may be the cause.
std::string NameRefused(const RunRecord& record,
                        const std::function<std::string(std::string_view)>& quote) {
  if (record.outcome.kind != OutcomeKind::kAgentFailed) return {};
  const std::string hosts = ListRefusedHosts(record, quote);
  return hosts.empty() ? "" : " Requests were refused: " + hosts + ".";
}

std::string DescribeSuccess(const RunRecord& record) {
  std::string out;
  // The reason of an outcome `findings` counts them.
  if (!record.findings.empty() && record.outcome.kind == OutcomeKind::kSuccess) {
    out = Sentence(CountFindings(record.findings)) + " ";
  }
  out += Sentence(DescribeChanges(record.changes) +
                  (record.changes.applied || record.changes.ignored_files > 0
                       ? ", applied to the checkout"
                       : ""));
  std::vector<std::string> notes;
  if (const int64_t refused = CountAttempts(record); refused > 0) {
    notes.push_back(Plural(refused, "request") + " refused");
  }
  const auto fired = std::count_if(record.limits.begin(), record.limits.end(),
                                   [](const LimitRecord& limit) { return limit.fired; });
  if (fired > 0) notes.push_back(Plural(fired, "limit") + " reached");
  std::string said;
  for (const std::string& note : notes) said += (said.empty() ? "" : ", ") + note;
  return said.empty() ? out : out + " " + Sentence(said);
}

bool EndedBy(const OutcomeRecord& outcome, const LimitRecord& limit) {
  return (outcome.kind == OutcomeKind::kTimedOut &&
          limit.name == sandbox::RowOf(sandbox::LimitName::kTimeout).record) ||
         (outcome.kind == OutcomeKind::kIdle &&
          limit.name == sandbox::RowOf(sandbox::LimitName::kIdle).record) ||
         (outcome.kind == OutcomeKind::kLimit && limit.name == outcome.limit);
}

std::string ReasonOf(const RunRecord& record) {
  for (const LimitRecord& limit : record.limits) {
    if (limit.fired && EndedBy(record.outcome, limit) && !record.outcome.reason.empty()) {
      return Sentence(record.outcome.reason + " (" + DescribeLimit(limit) + ")");
    }
  }
  if (!record.outcome.reason.empty()) return Sentence(record.outcome.reason);
  const std::string limit = LimitName(record.outcome);
  return Sentence((limit.empty() ? "" : "The " + limit) +
                  std::string(WordsOf(record.outcome.kind).sentence));
}

}  // namespace

bool EndedByBudget(const OutcomeRecord& outcome) {
  if (outcome.kind != OutcomeKind::kLimit) return false;
  const sandbox::LimitRow* limit = sandbox::FindLimit(outcome.limit, &sandbox::LimitRow::record);
  return limit != nullptr && sandbox::BoundsModels(limit->name);
}

Tone ToneOf(const RunRecord& record) {
  const OutcomeKind kind = record.outcome.kind;
  if (kind == OutcomeKind::kInterrupted || kind == OutcomeKind::kTerminated) return Tone::kWarn;
  if (kind == OutcomeKind::kSkipped) return Tone::kGood;
  if (kind != OutcomeKind::kSuccess) return Tone::kBad;
  const bool reached = std::any_of(record.limits.begin(), record.limits.end(),
                                   [](const LimitRecord& limit) { return limit.fired; });
  const bool found = std::any_of(record.findings.begin(), record.findings.end(),
                                 [](const auto& f) { return f.severity != Severity::kNote; });
  const bool look = reached || found || !record.denials.empty() || record.denials_dropped > 0 ||
                    !record.changes.complete;
  return look ? Tone::kWarn : Tone::kGood;
}

std::string_view Sign(const RunRecord& record) {
  const bool look = record.outcome.kind == OutcomeKind::kSuccess && ToneOf(record) == Tone::kWarn;
  return look ? "⚠️" : WordsOf(record.outcome.kind).sign;
}

std::string NameOfRun(const RunRecord& record) {
  const std::string& task = record.agent.task;
  const std::string& leg = record.event.leg;
  return task + (task.empty() || leg.empty() ? "" : ", ") + leg;
}

std::string CountFindings(const std::vector<Finding>& findings) {
  std::string out;
  for (Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    const auto count = std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.severity == severity;
    });
    if (count > 0) out += (out.empty() ? "" : ", ") + Plural(count, Render(severity));
  }
  return out;
}

std::vector<const Finding*> WorstFindings(const RunRecord& record) {
  constexpr size_t kWorstMax = 3;
  std::vector<const Finding*> worst;
  for (const Finding* finding : InOrder(record.findings)) {
    if (finding->source != FindingSource::kAgent || finding->refuses) continue;
    if (worst.size() < kWorstMax) worst.push_back(finding);
  }
  return worst;
}

std::string ListRefusedHosts(const RunRecord& record,
                             const std::function<std::string(std::string_view)>& quote) {
  constexpr size_t kHostsMax = 3;
  std::set<std::string_view> hosts;
  std::string out;
  for (const DeniedRequest& denied : record.denials) {
    const std::string& host = denied.denial.host;
    if (host.empty() || !hosts.insert(host).second || hosts.size() > kHostsMax) continue;
    out += (out.empty() ? "" : ", ") + quote(host);
  }
  if (hosts.size() <= kHostsMax) return out;
  return out + " and " + Plural(static_cast<int64_t>(hosts.size() - kHostsMax), "more host");
}

std::string Badge(const OutcomeRecord& outcome) {
  return Capital(LimitName(outcome)) + std::string(WordsOf(outcome.kind).badge);
}

std::string VerdictLine(const RunRecord& record) {
  if (record.outcome.kind == OutcomeKind::kSuccess) return DescribeSuccess(record);
  if (Succeeded(record.outcome.kind)) return ReasonOf(record) + " " + DescribeSuccess(record);
  const std::string refusing = CountRefusing(record.findings);
  if (record.outcome.kind == OutcomeKind::kRefused && !refusing.empty()) {
    return refusing + " in the patch." + Unapplied(record);
  }
  const auto plain = [](std::string_view text) { return std::string(text); };
  return ReasonOf(record) + NameRefused(record, plain) + Unapplied(record);
}

std::string VerdictPlaces(const RunRecord& record, const Quoting& quoting) {
  constexpr size_t kPlacesMax = 2;
  if (record.outcome.kind == OutcomeKind::kSuccess) return DescribeSuccess(record);
  if (Succeeded(record.outcome.kind)) {
    return quoting.text(ReasonOf(record)) + " " + DescribeSuccess(record);
  }
  std::string out;
  int64_t refusing = 0;
  for (const Finding& finding : record.findings) {
    if (!finding.refuses || refusing++ >= static_cast<int64_t>(kPlacesMax)) continue;
    const std::string place = PlaceOf(finding);
    const RuleWords* words = WordsOf(finding.rule);
    out += (out.empty() ? "" : ", ") +
           (words != nullptr ? std::string(words->noun) : quoting.text(finding.rule)) +
           (place.empty() ? "" : " " + quoting.place(place));
  }
  if (record.outcome.kind != OutcomeKind::kRefused || out.empty()) {
    return quoting.text(ReasonOf(record)) + NameRefused(record, quoting.place) + Unapplied(record);
  }
  const int64_t more = refusing - static_cast<int64_t>(kPlacesMax);
  if (more > 0) out += ", and " + HumanCount(more) + " more";
  return out + "." + Unapplied(record);
}

std::vector<Cause> Causes(const RunRecord& record, size_t causes_max) {
  std::vector<Cause> causes;
  for (size_t i = 0; i < record.findings.size(); ++i) {
    const Finding& finding = record.findings[i];
    if (!finding.refuses) continue;
    causes.push_back(
        {finding.message, std::string(report::AdviceFor(finding.rule)), static_cast<int>(i), true});
  }
  if (record.outcome.kind != OutcomeKind::kSuccess && causes.empty()) {
    causes.push_back({ReasonOf(record), AdviceFor(record.outcome), -1, true});
  }
  for (const LimitRecord& limit : record.limits) {
    if (!limit.fired || EndedBy(record.outcome, limit)) continue;
    // Only a lasting sandbox outlasts it.
    const std::string also = limit.name == "disk" ? ", and --memory, which holds the files" : "";
    causes.push_back({"The " + limit.name + " limit was reached: " + DescribeLimit(limit),
                      "Raise it if the task needs more: " + OptionOf(limit.name) + also + ".", -1,
                      false});
  }
  if (!record.changes.complete) {
    causes.push_back({"The list of changes is incomplete.",
                      "changes.patch is not the whole of what the agent did.", -1, false});
  }
  if (causes.size() > causes_max) causes.resize(causes_max);
  return causes;
}

std::string_view AdviceFor(std::string_view rule) {
  const RuleWords* words = WordsOf(rule);
  return words != nullptr ? words->advice : std::string_view();
}

std::string PlaceOf(const Finding& finding) {
  if (finding.path.empty() || finding.line <= 0) return finding.path;
  return finding.path + ":" + std::to_string(finding.line);
}

std::string ShortPolicy(const PolicyRecord& policy) {
  if (policy.source == "default" || policy.path.empty()) return "built-in default";
  if (policy.ref.empty()) return policy.path.substr(policy.path.rfind('/') + 1);
  const std::string commit = policy.commit.substr(0, 7);
  if (commit.empty() || policy.ref == policy.commit) return commit.empty() ? policy.ref : commit;
  return policy.ref + "@" + commit;
}

int64_t CountEnforced(const IsolationRecord& isolation) {
  return std::count_if(
      isolation.controls.begin(), isolation.controls.end(),
      [](const ControlRecord& control) { return control.state == ControlState::kEnforced; });
}

std::string DescribeControls(const IsolationRecord& isolation) {
  return HumanCount(CountEnforced(isolation)) + " of " +
         Plural(static_cast<int64_t>(isolation.controls.size()), "control");
}

}  // namespace report
