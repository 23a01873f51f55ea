// SPDX-License-Identifier: Apache-2.0
#include "report/summary.h"

#include <algorithm>
#include <array>

#include "codec/text/neutral.h"
#include "report/wording.h"

namespace report {
namespace {

using codec::MarkdownCode;
using codec::MarkdownText;

// How much of everything is shown; the next smaller one is taken when the text gets too long.
struct Extent {
  size_t rows;
  size_t text_bytes;
};
constexpr std::array<Extent, 4> kExtents = {{{50, 16000}, {20, 4000}, {8, 1500}, {3, 300}}};

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

bool IsPlainUrl(std::string_view url) {
  return url.substr(0, 8) == "https://" && std::all_of(url.begin(), url.end(), [](char c) {
           return c > 0x20 && c < 0x7f && c != '<' && c != '>' && c != '\\';
         });
}

// One amount can stand as it is; two dollar signs would begin and end a formula.
std::string RenderCost(const UsageRecord& usage) {
  std::string cost = DescribeCost(usage);
  const bool plain = usage.unpriced_models.empty() && std::count(cost.begin(), cost.end(), '$') < 2;
  return plain ? cost : MarkdownText(cost, 300);
}

std::string RenderHead(const RunRecord& record, const SummaryOptions& options) {
  std::vector<std::string> parts = {DescribeChanges(record.changes)};
  if (const int64_t refused = CountAttempts(record.denials); refused > 0) {
    parts.push_back(Plural(refused, "request") + " refused");
  }
  std::string out = "### " + std::string(Sign(record.outcome)) + " " +
                    MarkdownText(Headline(record.outcome), 200) + ": " + JoinPresent(parts, ", ") +
                    "\n\n";
  if (!record.outcome.reason.empty()) {
    out += "**Why:** " + MarkdownText(record.outcome.reason, 600) + "\n\n";
  }
  const std::string model = record.usage.model.empty() ? record.agent.model : record.usage.model;
  out +=
      JoinPresent(
          {record.agent.name.empty() ? "" : MarkdownCode(record.agent.name, 60),
           record.isolation.tier == kLesserTier ? "isolation " + MarkdownCode(kLesserTier, 20) : "",
           model.empty() ? "" : MarkdownCode(model, 80), HumanDuration(DurationSeconds(record)),
           DescribeUsage(record.usage), RenderCost(record.usage)},
          " · ") +
      "\n";
  if (IsPlainUrl(options.report_url)) {
    out += "\n[Full report](<" + options.report_url + ">)\n";
  }
  return out;
}

std::string RenderFiles(const ReportInput& input, Extent extent) {
  if (input.files.empty()) return {};
  std::string out = "\n| Changed | | + | − |\n|---|---|--:|--:|\n";
  const size_t shown = std::min(input.files.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) {
    const ChangedFile& file = input.files[i];
    std::string name = MarkdownCode(file.path, 160);
    if (!file.old_path.empty()) name = MarkdownCode(file.old_path, 160) + " → " + name;
    out += "| " + name + " | " + Render(file.state) + (file.binary ? ", binary" : "") + " | " +
           (file.binary ? "" : HumanCount(file.added_lines)) + " | " +
           (file.binary ? "" : HumanCount(file.removed_lines)) + " |\n";
  }
  out += MoreRows(input.files.size(), shown, "changes.json");
  if (!input.record.changes.complete) {
    out += "\n⚠️ **This list is incomplete:** the collection of changes reached a limit.\n";
  }
  return out;
}

std::string RenderFindings(const RunRecord& record, Extent extent) {
  if (record.findings.empty()) return {};
  std::string out = "\n#### Findings\n\n| | Rule | Where | What |\n|---|---|---|---|\n";
  const size_t shown = std::min(record.findings.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) {
    const Finding& finding = record.findings[i];
    std::string where = finding.path;
    if (!where.empty() && finding.line > 0) where += ":" + std::to_string(finding.line);
    out += std::string("| ") + (finding.refuses ? "⛔ refused" : Render(finding.severity)) + " | " +
           MarkdownCode(finding.rule, 60) + " | " +
           (where.empty() ? "" : MarkdownCode(where, 160)) + " | " +
           MarkdownText(finding.message, 300) + " |\n";
  }
  return out + MoreRows(record.findings.size(), shown, "findings.sarif");
}

// What is not in the table must not look like nothing.
std::string DescribeUnread(const RunRecord& record) {
  if (record.denials_dropped <= 0) return {};
  return "\n" + Plural(record.denials_dropped, "more record") +
         " of refused requests: see `events.log`\n";
}

std::string RenderDenials(const RunRecord& record, Extent extent) {
  const std::string unread = DescribeUnread(record);
  if (record.denials.empty()) return unread;
  std::string out =
      "\n#### Refused requests\n\n| Attempt | By | Times | Why |\n|---|---|--:|---|\n";
  const size_t shown = std::min(record.denials.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) {
    const DeniedRequest& denied = record.denials[i];
    out += "| " + MarkdownCode(DescribeAttempt(denied.denial), 160) + " | " +
           (denied.denial.binary.empty() ? "" : MarkdownCode(denied.denial.binary, 80)) + " | " +
           HumanCount(denied.count) + " | " + MarkdownText(DescribeRefusal(denied), 240) + " |\n";
  }
  out += MoreRows(record.denials.size(), shown, "events.log") + unread;
  std::vector<std::string> lines = AllowLines(record.denials);
  if (!lines.empty()) {
    const size_t lines_shown = std::min(lines.size(), extent.rows);
    std::string yaml = "# " + std::string(advise::kSuggestionWarning) + "\nendpoints:\n";
    for (size_t i = 0; i < lines_shown; ++i) yaml += "  - \"" + lines[i] + "\"\n";
    if (lines.size() > lines_shown) yaml += "  # more in policy-suggestion.yml\n";
    out +=
        "\nIf the agent needs these requests, allow them by adding this to "
        "`.agentic-ci/openshell-policy.yml`" +
        std::string(" (`policy-suggestion.yml` has the same in OpenShell's schema):\n\n") +
        codec::MarkdownFence(yaml, "yaml", 8000);
  }
  const std::string rules = JoinPresent(AllowRules(record.denials, extent.rows), "");
  if (rules.empty()) return out;
  return out +
         "\nFor requests that are judged by operation, add this to their endpoint, in OpenShell's "
         "schema:\n\n" +
         codec::MarkdownFence("# " + std::string(advise::kSuggestionWarning) + "\n" + rules, "yaml",
                              8000);
}

std::string RenderLimits(const RunRecord& record) {
  std::vector<std::string> parts;
  for (const LimitRecord& limit : record.limits) {
    if (!limit.limit && !limit.used) continue;
    std::string part = MarkdownText(limit.name + " " + DescribeLimit(limit), 120);
    parts.push_back(limit.fired ? "**" + part + " (reached)**" : part);
  }
  return parts.empty() ? "" : "- **Limits:** " + JoinPresent(parts, " · ") + "\n";
}

std::string RenderControls(const IsolationRecord& isolation) {
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
  std::string out = "\n<details><summary>Controls</summary>\n\n";
  out += "- **Policy:** " + MarkdownCode(DescribePolicy(record.policy), 200);
  if (!record.trust.level.empty()) {
    out += " · " + MarkdownText(record.trust.level, 40);
    if (!record.trust.reason.empty()) out += ": " + MarkdownText(record.trust.reason, 200);
  }
  out += "\n";
  if (!record.image.reference.empty()) {
    const bool pinned = record.image.reference.ends_with("@" + record.image.digest);
    out += "- **Image:** " + MarkdownCode(record.image.reference, 200) + " " +
           (pinned ? "" : MarkdownCode(record.image.digest, 80) + " ") +
           (record.image.signer.empty() ? "signer unknown"
                                        : "signed by " + MarkdownText(record.image.signer, 200)) +
           "\n";
  }
  if (!record.isolation.tier.empty()) out += RenderControls(record.isolation);
  out += RenderLimits(record);
  for (const WaiverRecord& waiver : record.waivers) {
    out += "- ⚠️ **Waiver** " + MarkdownCode(waiver.name, 80) + ": " +
           MarkdownText(waiver.reason, 300) + "\n";
  }
  return out + "\n</details>\n";
}

// As many of the last lines as there is room for.
std::string RenderTail(const ReportInput& input, Extent extent) {
  std::string text;
  for (auto line = input.agent_tail.rbegin(); line != input.agent_tail.rend(); ++line) {
    if (text.size() + line->size() + 1 > extent.text_bytes) break;
    text.insert(0, *line + "\n");
  }
  if (text.empty()) return {};
  return "\n<details><summary>The end of the agent's log</summary>\n\n" +
         codec::MarkdownFence(codec::RedactTokens(text), "text", 2 * extent.text_bytes) +
         "\n</details>\n";
}

// What the policy allowed and led nowhere.
std::string RenderFailures(const RunRecord& record, Extent extent) {
  if (record.failures.empty()) return {};
  std::string out = "\n#### Failed connections\n\n| To | Times | Why |\n|---|--:|---|\n";
  const size_t shown = std::min(record.failures.size(), extent.rows);
  for (size_t i = 0; i < shown; ++i) {
    const FailedConnection& failed = record.failures[i];
    out += "| " + MarkdownCode(failed.host + ":" + std::to_string(failed.port), 160) + " | " +
           HumanCount(failed.count) + " | " + MarkdownText(failed.reason, 240) + " |\n";
  }
  return out + MoreRows(record.failures.size(), shown, "events.log");
}

std::string RenderAgentText(const ReportInput& input, Extent extent) {
  if (input.agent_text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  return "\n<details><summary>The agent's final message (not verified)</summary>\n\n" +
         codec::MarkdownFence(codec::RedactTokens(input.agent_text), "text", extent.text_bytes) +
         "\n</details>\n";
}

}  // namespace

std::string RenderSummary(const ReportInput& input, const SummaryOptions& options) {
  const std::string head = RenderHead(input.record, options);
  for (Extent extent : kExtents) {
    const std::string out = head + RenderFindings(input.record, extent) +
                            RenderTail(input, extent) + RenderFiles(input, extent) +
                            RenderDenials(input.record, extent) +
                            RenderFailures(input.record, extent) + RenderAgentText(input, extent) +
                            RenderTerms(input.record);
    if (out.size() <= options.bytes_max) return out;
  }
  return codec::CutUtf8(head, options.bytes_max);
}

}  // namespace report
