// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "codec/text/neutral.h"
#include "report/page_parts.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report::page {
namespace {

constexpr size_t kCausesMax = 50;
constexpr size_t kAgentBytesMax = size_t{64} << 10;

std::string_view TitleOf(const OutcomeRecord& outcome) {
  switch (outcome.kind) {
    case OutcomeKind::kSuccess:
      return "What to look at";
    case OutcomeKind::kRefused:
      return "Why it was refused";
    case OutcomeKind::kSetupFailed:
    case OutcomeKind::kUntrusted:
    case OutcomeKind::kSkipped:
    case OutcomeKind::kBudget:
      return "Why it did not start";
    case OutcomeKind::kAgentFailed:
    case OutcomeKind::kFindings:
    case OutcomeKind::kCredentialRefused:
      return "Why it failed";
    case OutcomeKind::kTimedOut:
    case OutcomeKind::kIdle:
    case OutcomeKind::kLimit:
    case OutcomeKind::kInterrupted:
    case OutcomeKind::kTerminated:
    case OutcomeKind::kSandboxLost:
    case OutcomeKind::kGatewayLost:
      return "Why it ended";
  }
  return {};
}

std::string RenderCauses(const RunRecord& record, const ChangesHtml& changes) {
  std::string rows;
  for (const Cause& cause : Causes(record, kCausesMax)) {
    const bool of_finding = cause.finding >= 0;
    const auto index = static_cast<size_t>(std::max(cause.finding, 0));
    rows +=
        CauseRow({cause.decided ? "bad" : "warn", cause.decided ? "✕" : "!",
                  of_finding ? FindingText(record, record.findings[index]) : Text(cause.what, 2000),
                  Text(cause.advice, 1000), of_finding ? LinkTo(index, changes) : ""});
  }
  const auto refusing =
      static_cast<size_t>(std::count_if(record.findings.begin(), record.findings.end(),
                                        [](const Finding& finding) { return finding.refuses; }));
  rows += MoreRows(refusing, kCausesMax, "findings.sarif");
  if (const int64_t refused = CountAttempts(record); refused > 0) {
    const std::string hosts =
        ListRefusedHosts(record, [](std::string_view host) { return CodeText(host); });
    rows += CauseRow({"warn", "!",
                      Plural(refused, "request") + " refused" + (hosts.empty() ? "" : ": ") + hosts,
                      "Each may be a missing endpoint, or data on its way out.",
                      "<a class=\"go\" href=\"#network\">see the requests</a>"});
  }
  const int64_t lesser =
      static_cast<int64_t>(record.isolation.controls.size()) - CountEnforced(record.isolation);
  if (lesser > 0) {
    rows += CauseRow({"warn", "!", Plural(lesser, "control") + " not enforced by the kernel", "",
                      "<a class=\"go\" href=\"#sandbox\">see the sandbox</a>"});
  }
  if (rows.empty()) return {};
  return Card(TitleOf(record.outcome), rows);
}

// The repository's own commands over the patch, with the end of what failing ones printed.
std::string RenderChecks(const RunRecord& record) {
  std::string rows;
  for (const CheckRecord& check : record.checks) {
    const bool good = check.outcome == OutcomeKind::kSuccess;
    std::string text;
    for (const std::string& line : check.output) text += line + "\n";
    rows += CauseRow({good ? "soft" : "bad", good ? "✓" : "!", CodeText(check.command),
                      good ? "Passed." : Text(check.reason)});
    if (!text.empty()) rows += "<pre class=\"text\">" + Text(text, kAgentBytesMax) + "</pre>\n";
  }
  if (rows.empty()) return {};
  return Card(
      "Checks <small>" + HumanCount(static_cast<int64_t>(record.checks.size())) + "</small>", rows,
      "checks");
}

std::string RenderTail(const ReportInput& input) {
  // A refused agent did its work; what it said is in its log.
  if (input.agent_tail.empty() || input.record.outcome.kind == OutcomeKind::kRefused) return {};
  std::string text;
  for (const std::string& line : input.agent_tail) text += line + "\n";
  return Card("The end of the agent’s log <small>" +
                  Plural(static_cast<int64_t>(input.agent_tail.size()), "line") + "</small>",
              "<pre class=\"text\">" + Text(text, kAgentBytesMax) + "</pre>\n");
}

std::string RenderAgentText(const ReportInput& input) {
  if (input.agent_text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  return "<div class=\"card agent\"><h2>The agent’s own words <small>not verified</small></h2>\n"
         "<pre class=\"text\">" +
         Text(input.agent_text, kAgentBytesMax) + "</pre>\n</div>\n";
}

}  // namespace

std::string RenderVerdict(const ReportInput& input, const ChangesHtml& changes) {
  const RunRecord& record = input.record;
  const std::string out = RenderCauses(record, changes) + RenderFindings(record, changes) +
                          RenderChecks(record) + RenderTail(input) + RenderAgentText(input);
  if (!out.empty()) return out;
  return "<p class=\"soft\">Nothing needs a person’s attention.</p>\n";
}

}  // namespace report::page
