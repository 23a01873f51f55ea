// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <algorithm>
#include <array>

#include "codec/text/neutral.h"
#include "codec/text/prose.h"
#include "codec/text/shell_word.h"
#include "report/findings.h"
#include "report/host_groups.h"
#include "report/patch_file.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report {
namespace {

using codec::MarkdownCode;
using codec::MarkdownText;

// The extent to which everything is shown; the next smaller one is taken if the text gets too long.
struct Extent {
  size_t rows;
  size_t text_bytes;
};
constexpr std::array<Extent, 5> kExtents = {
    {{50, 16000}, {50, 4000}, {20, 4000}, {8, 1500}, {3, 300}}};

// A patch up to this stands open.
constexpr size_t kSmallPatchLines = 40;
constexpr size_t kSmallPatchBytes = 3000;

// The usual one needs no words.
constexpr char kLesserTier[] = "landlock";

// Prose from several parts, empty ones left out.
std::string JoinPresent(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

std::string MoreRows(size_t all, size_t shown, std::string_view where) {
  if (all <= shown) return {};
  return "\n… and " + HumanCount(static_cast<int64_t>(all - shown)) + " more in `" +
         std::string(where) + "`\n";
}

// A part that is folded; `title` is ours.
std::string Folded(const std::string& title, const std::string& body, bool open = false) {
  return "\n<details" + std::string(open ? " open" : "") + "><summary>" + title + "</summary>\n\n" +
         body + "\n</details>\n";
}

std::string Counted(std::string_view title, int64_t count) {
  return std::string(title) + " (" + HumanCount(count) + ")";
}

// One amount can stand as it is; two dollar signs would begin and end a formula.
std::string RenderCost(const UsageRecord& usage) {
  std::string cost = DescribeCost(usage);
  const bool plain = usage.unpriced_models.empty() && std::count(cost.begin(), cost.end(), '$') < 2;
  return plain ? cost : MarkdownText(cost, 300);
}

std::string Link(std::string_view text, const std::string& url) {
  return IsPlainUrl(url) ? "[" + std::string(text) + "](<" + url + ">)" : std::string();
}

// The commit that the run looked at.
std::string DescribeHead(const EventRecord& event, const SummaryOptions& options) {
  if (event.head_sha.empty()) return {};
  const std::string name = MarkdownCode(event.head_sha.substr(0, 7), 20);
  const std::string link = Link(name, options.pages.Commit(event.head_sha));
  return "commit " + (link.empty() ? name : link);
}

// Who or what asked for the run.
std::string DescribeStarter(const EventRecord& event) {
  if (event.kind == "schedule") return "on schedule";
  return event.actor.empty() ? "" : "asked by " + MarkdownText(event.actor, 100);
}

std::string RenderHead(const RunRecord& record, const SummaryOptions& options) {
  const std::string model = record.usage.model.empty() ? record.agent.model : record.usage.model;
  const std::string name = NameOfRun(record);
  return "### " + std::string(Sign(record)) + " " +
         (name.empty() ? "" : MarkdownText(name, 200) + " · ") +
         MarkdownText(Badge(record.outcome), 100) + ": " +
         VerdictPlaces(record, {[](std::string_view place) { return MarkdownCode(place, 160); },
                                [](std::string_view text) { return MarkdownText(text, 600); }}) +
         "\n\n" +
         JoinPresent(
             {record.agent.name.empty() ? "" : MarkdownCode(record.agent.name, 60),
              record.isolation.tier == kLesserTier ? "isolation " + MarkdownCode(kLesserTier, 20)
                                                   : "",
              model.empty() ? "" : MarkdownCode(model, 80), HumanDuration(DurationSeconds(record)),
              RenderCost(record.usage), "policy " + MarkdownCode(ShortPolicy(record.policy), 100),
              DescribeHead(record.event, options), DescribeStarter(record.event),
              Link("run", options.run_url), Link("report", options.report_url)},
             " · ") +
         "\n" + (options.since.empty() ? "" : "\n" + options.since + "\n");
}

// Returns the agent's findings that are in the list above the tables: none where a gate refused,
// whose table stands open.
std::vector<const Finding*> ListedFindings(const RunRecord& record) {
  const bool refused = std::any_of(record.findings.begin(), record.findings.end(),
                                   [](const Finding& finding) { return finding.refuses; });
  return refused ? std::vector<const Finding*>() : WorstFindings(record);
}

// Renders the agent's worst findings, since the table of them all is folded.
std::string RenderWorst(const RunRecord& record, Extent extent) {
  const std::vector<const Finding*> worst = ListedFindings(record);
  std::string out;
  for (size_t i = 0; i < std::min(worst.size(), extent.rows); ++i) {
    out += RenderFindingItem(*worst[i]);
  }
  return out.empty() ? "" : "\n" + out;
}

std::string RenderFiles(const ReportInput& input, Extent extent) {
  std::string out = "| Changed | | + | − |\n|---|---|--:|--:|\n";
  const size_t shown = std::min(input.files.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) {
    const ChangedFile& file = input.files[i];
    std::string name = MarkdownCode(file.path, 160);
    if (!file.old_path.empty()) name = MarkdownCode(file.old_path, 160) + " → " + name;
    out += "| " + name + " | " + Render(file.state) + (file.binary ? ", binary" : "") + " | " +
           (file.binary ? "" : HumanCount(file.added_lines)) + " | " +
           (file.binary ? "" : HumanCount(file.removed_lines)) + " |\n";
  }
  return out + MoreRows(input.files.size(), shown, "changes.json");
}

// The patch without the bytes of binary files.
struct DiffText {
  std::string text;
  size_t lines = 0;
  bool cut = false;
};
DiffText MakeDiff(std::string_view patch, size_t bytes_max) {
  DiffText diff;
  const auto add = [&](char sign, std::string_view line) {
    diff.cut = diff.cut || diff.text.size() + line.size() + 2 > bytes_max;
    if (diff.cut) return;
    if (sign != '\0') diff.text += sign;
    diff.text.append(line).append("\n");
    ++diff.lines;
  };
  for (const PatchFile& file : SplitPatch(patch)) {
    add('\0', "diff --git " + std::string(file.header));
    for (std::string_view fact : file.facts) add('\0', fact);
    if (file.binary) add('\0', "(binary)");
    for (const std::vector<PatchRow>& rows : file.hunks) {
      for (const PatchRow& row : rows) {
        const char sign = row.kind == PatchRow::Kind::kAdded     ? '+'
                          : row.kind == PatchRow::Kind::kRemoved ? '-'
                          : row.kind == PatchRow::Kind::kContext ? ' '
                                                                 : '\0';
        add(sign, row.text);
      }
    }
    if (diff.cut) break;
  }
  diff.text = codec::RedactTokens(diff.text);
  return diff;
}

std::string RenderDiff(const ReportInput& input, Extent extent) {
  if (input.files.empty()) return {};
  const std::string& patch = input.shown_patch.empty() ? input.patch : input.shown_patch;
  const DiffText diff = MakeDiff(patch, extent.text_bytes);
  std::string out;
  if (!input.record.changes.complete) {
    out = "\n⚠️ **This list is incomplete:** the collection of changes reached a limit.\n";
  }
  if (!input.record.changes.prefix.empty() && !patch.empty()) {
    const std::string apply =
        "git apply --directory=" + codec::ShellArgument(input.record.changes.prefix) +
        " changes.patch";
    out += "\nThe paths are relative to the run's directory: apply the patch with " +
           MarkdownCode(apply, 300) + " at the top of the repository.\n";
  }
  const std::string fence =
      diff.text.empty() ? "" : codec::MarkdownFence(diff.text, "diff", 2 * extent.text_bytes);
  const bool small = !fence.empty() && !diff.cut && diff.lines <= kSmallPatchLines &&
                     diff.text.size() <= kSmallPatchBytes;
  if (small) return out + "\n" + fence;
  std::string body = RenderFiles(input, extent);
  if (!fence.empty()) body += "\n" + fence;
  if (diff.cut) body += "\nThe diff is cut here; all of it is in `changes.patch`.\n";
  if (patch.empty()) body += "\nThe patch is not part of the report.\n";
  const auto files = static_cast<int64_t>(input.files.size());
  if (patch.empty()) return out + Folded(Counted("Changed files", files), body);
  return out + Folded("Diff (" + Plural(files, "file") + ")", body);
}

// One source's, in the order that they are given.
std::string RenderFindingsOf(const char* title, const std::vector<const Finding*>& findings,
                             Extent extent) {
  if (findings.empty()) return {};
  std::string out = "| | Rule | Where | What |\n|---|---|---|---|\n";
  const size_t shown = std::min(findings.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) out += RenderFindingRow(*findings[i]);
  std::vector<std::string> advice;
  for (const Finding* finding : findings) {
    const std::string one(finding->refuses ? AdviceFor(finding->rule) : "");
    if (!one.empty() && std::find(advice.begin(), advice.end(), one) == advice.end()) {
      advice.push_back(one);
      out += "\n" + MarkdownCode(finding->rule, 60) + ": " + one + "\n";
    }
  }
  return Folded(Counted(title, static_cast<int64_t>(findings.size())),
                out + MoreRows(findings.size(), shown, "findings.sarif"),
                findings.front()->refuses);
}

// Renders the findings. The runner's come before, and apart from, the agent's, of which a table is
// left out that would only repeat the list.
std::string RenderFindings(const RunRecord& record, const std::set<const Finding*>& first,
                           Extent extent) {
  std::vector<const Finding*> gates;
  std::vector<const Finding*> agent;
  for (const Finding* finding : InOrder(record.findings)) {
    (finding->source == FindingSource::kAgent ? agent : gates).push_back(finding);
  }
  for (std::vector<const Finding*>* table : {&gates, &agent}) {
    std::stable_partition(table->begin(), table->end(),
                          [&](const Finding* finding) { return first.contains(finding); });
  }
  if (agent.size() <= std::min(ListedFindings(record).size(), extent.rows)) agent.clear();
  return RenderFindingsOf("Gates", gates, extent) +
         RenderFindingsOf("Findings of the agent", agent, extent);
}

// The repository's own commands over the patch; what those that did not pass said at their end.
std::string RenderChecks(const RunRecord& record, Extent extent) {
  if (record.checks.empty()) return {};
  std::string out = "| Check | Result | Took |\n|---|---|---|\n";
  std::string said;
  bool passed = true;
  for (const CheckRecord& check : record.checks) {
    const bool good = check.outcome == OutcomeKind::kSuccess;
    passed = passed && good;
    out += "| " + MarkdownCode(check.command, 160) + " | " +
           (good ? "passed" : "⛔ " + MarkdownText(check.reason, 160)) + " | " +
           HumanDuration(static_cast<double>(check.ms) / 1000) + " |\n";
    std::string text;
    for (auto line = check.output.rbegin(); line != check.output.rend(); ++line) {
      if (text.size() + line->size() + 1 > extent.text_bytes) break;
      text.insert(0, *line + "\n");
    }
    if (text.empty()) continue;
    said += "\n" + MarkdownCode(check.command, 160) + ":\n\n" +
            codec::MarkdownFence(codec::RedactTokens(text), "text", 2 * extent.text_bytes);
  }
  return Folded(Counted("Checks", static_cast<int64_t>(record.checks.size())), out + said, !passed);
}

// The lines that would allow what was refused, and their warning, once.
std::string RenderAdvice(const RunRecord& record, Extent extent) {
  const std::vector<DeniedRequest> denials = DenialsToAdvise(record);
  std::string out;
  const std::vector<std::string> lines = AllowLines(denials);
  if (!lines.empty()) {
    const size_t lines_shown = std::min(lines.size(), extent.rows);
    std::string yaml = "# " + std::string(advise::kSuggestionWarning) + "\nendpoints:\n";
    for (size_t i = 0; i < lines_shown; ++i) yaml += "  - \"" + lines[i] + "\"\n";
    if (lines.size() > lines_shown) yaml += "  # more in policy-suggestion.yml\n";
    out += "\nIf the agent needs these requests, allow them by adding this to " +
           codec::MarkdownCode(PolicyFileOf(record), 200) +
           std::string(
               " (`policy-suggestion.yml` has the same hosts, and no more than these "
               "requests):\n\n") +
           codec::MarkdownFence(yaml, "yaml", 8000);
  }
  const std::string rules = JoinPresent(AllowRules(denials, extent.rows), "");
  if (rules.empty()) return out;
  return out +
         "\nFor requests that write, or are judged by operation, add this to their endpoint, in "
         "the form that `agentic-ci policy export --to openshell` prints:\n\n" +
         codec::MarkdownFence("# " + std::string(advise::kSuggestionWarning) + "\n" + rules, "yaml",
                              8000);
}

std::string RenderGroup(const HostGroup& group) {
  std::vector<std::string> programs;
  for (const std::string& program : group.programs) programs.push_back(MarkdownCode(program, 80));
  std::string asked;
  std::string why;
  size_t different = 0;
  for (const HostRequest& one : group.requests) {
    if (one.answer == HostRequest::Answer::kAllowed) continue;
    if (different++ == 0) {
      asked = one.text == "connect" ? "" : MarkdownCode(one.text, 160);
      why = MarkdownText(one.reason, 240);
    }
  }
  if (different > 1) {
    asked += " and " + HumanCount(static_cast<int64_t>(different - 1)) + " more";
  }
  const int64_t count = group.refused + group.failed;
  return "| " + std::string(group.refused > 0 ? "" : "failed: ") + MarkdownCode(group.name, 160) +
         " | " + HumanCount(count) + " | " + asked + " | " + JoinPresent(programs, ", ") + " | " +
         why + " |\n";
}

std::string RenderNetwork(const RunRecord& record, Extent extent) {
  const std::vector<HostGroup> groups = GroupHosts(record, {});
  const int64_t refused = CountAttempts(record);
  std::string body;
  if (!groups.empty()) {
    body = "| Host | Times | Request | By | Why |\n|---|--:|---|---|---|\n";
    const size_t shown = std::min(groups.size(), extent.rows);
    for (size_t i = 0; i < shown; ++i) body += RenderGroup(groups[i]);
    body += MoreRows(groups.size(), shown, "events.log");
  }
  // What is not in the table must not look like nothing.
  if (record.denials_dropped > 0) {
    body += "\n" + Plural(record.denials_dropped, "more record") +
            " of refused requests: see `events.log`\n";
  }
  if (body.empty()) return {};
  const bool only_failed = refused == 0 && record.denials_dropped <= 0;
  return Folded(only_failed ? "Failed connections" : Counted("Refused requests", refused),
                body + RenderAdvice(record, extent));
}

std::string ListLimits(const RunRecord& record) {
  std::vector<std::string> parts;
  for (const LimitRecord& limit : record.limits) {
    if (!limit.limit && !limit.used) continue;
    std::string part = MarkdownText(limit.name + " " + DescribeLimit(limit), 120);
    parts.push_back(limit.fired ? "**" + part + " (reached)**" : part);
  }
  return parts.empty() ? "" : "- **Limits:** " + JoinPresent(parts, " · ") + "\n";
}

std::string ListControls(const IsolationRecord& isolation) {
  std::string out = "- **Isolation:** " + MarkdownCode(isolation.tier, 40);
  for (ControlState state :
       {ControlState::kEnforced, ControlState::kEmulated, ControlState::kUnavailable}) {
    std::vector<std::string> names;
    for (const ControlRecord& control : isolation.controls) {
      if (control.state != state) continue;
      std::string name = MarkdownText(control.name, 60);
      if (state != ControlState::kEnforced && !control.note.empty()) {
        name += " (" + MarkdownText(control.note, 120) + ")";
      }
      names.push_back(name);
    }
    if (!names.empty()) out += "; " + Render(state) + ": " + JoinPresent(names, ", ");
  }
  return out + "\n";
}

std::string RenderTerms(const RunRecord& record) {
  std::string out = "- **Policy:** " + MarkdownCode(DescribePolicy(record.policy), 200);
  if (!record.trust.level.empty()) {
    out += " · " + MarkdownText(record.trust.level, 40);
    if (!record.trust.reason.empty()) out += ": " + MarkdownText(record.trust.reason, 200);
  }
  out += "\n";
  if (!record.image.reference.empty()) {
    const bool pinned = record.image.reference.ends_with("@" + record.image.digest);
    out += "- **Image:** " + MarkdownCode(record.image.reference, 200) + " " +
           (pinned ? "" : MarkdownCode(record.image.digest, 80) + " ") +
           (record.image.signer.empty() ? "not signed"
                                        : "signed by " + MarkdownText(record.image.signer, 200)) +
           "\n";
  }
  if (!record.isolation.tier.empty()) out += ListControls(record.isolation);
  out += ListLimits(record);
  for (const WaiverRecord& waiver : record.waivers) {
    out += "- ⚠️ **Waiver** " + MarkdownCode(waiver.name, 80) + ": " +
           MarkdownText(waiver.reason, 300) + "\n";
  }
  const std::string usage = DescribeUsage(record.usage);
  if (!usage.empty()) out += "- **Usage:** " + usage + "\n";
  return Folded("Sandbox", out);
}

// Renders as many of the last lines as there is room for.
std::string RenderTail(const ReportInput& input, Extent extent) {
  std::string text;
  for (auto line = input.agent_tail.rbegin(); line != input.agent_tail.rend(); ++line) {
    if (text.size() + line->size() + 1 > extent.text_bytes) break;
    text.insert(0, *line + "\n");
  }
  if (text.empty() || input.record.outcome.kind == OutcomeKind::kRefused) return {};
  return Folded("The end of the agent's log",
                codec::MarkdownFence(codec::RedactTokens(text), "text", 2 * extent.text_bytes),
                input.record.outcome.kind == OutcomeKind::kAgentFailed);
}

constexpr char kAgentWords[] = "The agent's own words (not verified)";

std::string AgentProse(const ReportInput& input, Extent extent) {
  return codec::MarkdownProse(codec::RedactTokens(input.agent_text), extent.text_bytes);
}

// Returns whether the agent's words are the result: it ended well, and changed nothing.
bool LeadsWithAgent(const ReportInput& input) {
  return Succeeded(input.record.outcome.kind) && input.files.empty();
}

std::string RenderLeadingWords(const ReportInput& input, Extent extent) {
  const std::string prose = LeadsWithAgent(input) ? AgentProse(input, extent) : "";
  return prose.empty() ? "" : "\n**" + std::string(kAgentWords) + "**\n\n" + prose;
}

std::string RenderAgentText(const ReportInput& input, Extent extent) {
  const std::string prose = LeadsWithAgent(input) ? "" : AgentProse(input, extent);
  return prose.empty() ? "" : Folded(kAgentWords, prose);
}

}  // namespace

std::string RenderFindingRow(const Finding& finding) {
  const std::string where = PlaceOf(finding);
  return std::string("| ") + (finding.refuses ? "⛔ refused" : Render(finding.severity)) + " | " +
         MarkdownCode(finding.rule, 60) + " | " + (where.empty() ? "" : MarkdownCode(where, 160)) +
         " | " + codec::MarkdownSentence(finding.message, 300) + " |\n";
}

std::string RenderFindingItem(const Finding& finding) {
  const std::string where = PlaceOf(finding);
  return "- **" + Render(finding.severity) + "** " +
         (where.empty() ? "" : MarkdownCode(where, 160) + " ") +
         codec::MarkdownSentence(finding.message, 300) + " (" + MarkdownCode(finding.rule, 60) +
         ")\n";
}

std::string RenderSummary(const ReportInput& input, const SummaryOptions& options) {
  const std::string head = RenderHead(input.record, options);
  for (Extent extent : kExtents) {
    const std::string out = head + RenderWorst(input.record, extent) +
                            RenderLeadingWords(input, extent) + RenderChecks(input.record, extent) +
                            RenderFindings(input.record, options.first, extent) +
                            RenderTail(input, extent) + RenderDiff(input, extent) +
                            RenderNetwork(input.record, extent) + RenderAgentText(input, extent) +
                            RenderTerms(input.record);
    if (out.size() <= options.bytes_max) return out;
  }
  return codec::CutUtf8(head, options.bytes_max);
}

}  // namespace report
