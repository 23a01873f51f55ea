// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "report/html_style.h"
#include "report/wording.h"

namespace report {
namespace {

constexpr size_t kRowsMax = 500;

std::string Text(std::string_view text, size_t bytes_max = 2000) {
  return codec::HtmlText(codec::RedactTokens(text), bytes_max);
}

std::string CodeText(std::string_view text) { return "<code>" + Text(text, 1000) + "</code>"; }

std::string Tag(std::string_view kind) {
  return "<span class=\"tag " + Text(kind, 40) + "\">" + Text(kind, 40) + "</span>";
}

std::string Section(std::string_view title, std::string_view note, const std::string& body) {
  return "<section><h2>" + std::string(title) +
         (note.empty() ? "" : " <small>" + Text(note) + "</small>") + "</h2>\n" + body +
         "</section>\n";
}

std::string Fact(std::string_view name, const std::string& html, std::string_view kind = "") {
  if (html.empty()) return {};
  return "<div" + (kind.empty() ? "" : " class=\"" + std::string(kind) + "\"") + "><dt>" +
         std::string(name) + "</dt><dd>" + html + "</dd></div>\n";
}

std::string MoreRows(size_t all, std::string_view where) {
  if (all <= kRowsMax) return {};
  return "<p>… and " + HumanCount(static_cast<int64_t>(all - kRowsMax)) + " more in <code>" +
         std::string(where) + "</code></p>\n";
}

std::string_view Tone(OutcomeKind kind) {
  if (kind == OutcomeKind::kSuccess) return "good";
  const bool stopped = kind == OutcomeKind::kInterrupted || kind == OutcomeKind::kTerminated;
  return stopped ? "warn" : "bad";
}

std::string DescribeEvent(const EventRecord& event) {
  if (event.repository.empty()) return {};
  std::string out = event.repository;
  if (event.number > 0) out += (event.forge == "gitlab" ? "!" : "#") + std::to_string(event.number);
  if (!event.actor.empty()) out += " by " + event.actor;
  if (event.from_fork) out += ", from a fork";
  return out;
}

std::string RenderHeader(const RunRecord& record) {
  std::string out = "<header class=\"" + std::string(Tone(record.outcome.kind)) + "\">\n<h1>" +
                    std::string(Sign(record.outcome)) + " " + Text(Headline(record.outcome)) +
                    ": " + Text(DescribeChanges(record.changes));
  if (const int64_t refused = CountAttempts(record.denials); refused > 0) {
    out += ", " + Plural(refused, "request") + " refused";
  }
  out += "</h1>\n";
  if (!record.outcome.reason.empty()) {
    out += "<p class=\"why\">" + Text(record.outcome.reason) + "</p>\n";
  }
  const std::string model = record.usage.model.empty() ? record.agent.model : record.usage.model;
  const std::string agent =
      record.agent.name + (record.agent.version.empty() ? "" : " ") + record.agent.version;
  out += "<dl class=\"facts\">\n" + Fact("Agent", Text(agent)) + Fact("Model", Text(model)) +
         Fact("Duration", HumanDuration(DurationSeconds(record))) +
         Fact("Isolation", Text(record.isolation.tier)) +
         Fact("Cost", Text(DescribeCost(record.usage), 300)) +
         Fact("Usage", Text(DescribeUsage(record.usage)), "wide") +
         Fact("For", Text(DescribeEvent(record.event)), "wide") +
         Fact("Policy", CodeText(DescribePolicy(record.policy)), "wide");
  std::string trust = record.trust.level;
  if (!trust.empty() && !record.trust.reason.empty()) trust += ": " + record.trust.reason;
  return out + Fact("Trust", Text(trust), "wide") + "</dl>\n</header>\n";
}

std::string RenderFindings(const RunRecord& record) {
  if (record.findings.empty()) return {};
  std::string rows;
  const size_t shown = std::min(record.findings.size(), kRowsMax);
  for (size_t i = 0; i < shown; ++i) {
    const Finding& finding = record.findings[i];
    std::string where = finding.path;
    if (!where.empty() && finding.line > 0) where += ":" + std::to_string(finding.line);
    rows += "<tr><td>" + Tag(finding.refuses ? "error" : Render(finding.severity)) +
            "</td><td class=\"k\">" + CodeText(finding.rule) + "</td><td>" +
            (where.empty() ? "" : CodeText(where)) + "</td><td>" + Text(finding.message) +
            (finding.refuses ? " <b class=\"bad\">Refused.</b>" : "") + "</td></tr>\n";
  }
  return Section("Findings", "",
                 "<div class=\"scroll\"><table class=\"stack\"><tr class=\"head\"><th></th>"
                 "<th>Rule</th><th>Where</th>"
                 "<th>What</th></tr>\n" +
                     rows + "</table></div>\n" +
                     MoreRows(record.findings.size(), "findings.sarif"));
}

std::string RenderChanged(const ReportInput& input) {
  if (input.files.empty() && input.patch.empty()) {
    return Section("Changes", "", "<p class=\"soft\">Nothing.</p>\n");
  }
  std::string body =
      RenderPatchHtml(input.shown_patch.empty() ? input.patch : input.shown_patch, input.files);
  if (!input.record.changes.complete) {
    body =
        "<p class=\"bad\">This list is incomplete: the collection of changes reached a "
        "limit.</p>\n" +
        body;
  }
  const std::string note = DescribeChanges(input.record.changes) +
                           (input.record.changes.applied ? ", applied to the checkout" : "");
  return Section("Changes", note, body);
}

std::string RenderDenials(const RunRecord& record) {
  std::string unread;
  if (record.denials_dropped > 0) {
    unread = "<p>" + Plural(record.denials_dropped, "more record") +
             " of refused requests: see <code>events.log</code></p>\n";
  }
  if (record.denials.empty()) {
    return Section("Refused requests", "",
                   unread.empty() ? "<p class=\"soft\">None.</p>\n" : unread);
  }
  std::string rows;
  const size_t shown = std::min(record.denials.size(), kRowsMax);
  for (size_t i = 0; i < shown; ++i) {
    const DeniedRequest& denied = record.denials[i];
    rows += "<tr><td>" + CodeText(DescribeAttempt(denied.denial)) +
            "</td><td class=\"k\" data-l=\"by\">" +
            (denied.denial.binary.empty() ? "?" : CodeText(denied.denial.binary)) +
            "</td><td class=\"n\" data-l=\"times\">" + HumanCount(denied.count) +
            "</td><td data-l=\"why\">" + Text(DescribeRefusal(denied), 600) + "</td></tr>\n";
  }
  std::string body =
      "<div class=\"scroll\"><table class=\"stack\"><tr class=\"head\"><th>Attempt</th><th>By</th>"
      "<th class=\"n\">Times</th><th>Why</th></tr>\n" +
      rows + "</table></div>\n" + MoreRows(record.denials.size(), "events.log") + unread;
  if (const std::vector<std::string> lines = AllowLines(record.denials); !lines.empty()) {
    std::string yaml = "# " + std::string(advise::kSuggestionWarning) + "\nendpoints:\n";
    for (const std::string& line : lines) yaml += "  - \"" + line + "\"\n";
    body +=
        "<div class=\"allow\"><p>If the agent needs these requests, allow them by adding this to "
        "<code>.agentic-ci/openshell-policy.yml</code> (<code>policy-suggestion.yml</code> has the "
        "same in OpenShell’s schema):</p><pre>" +
        Text(yaml, 100000) + "</pre></div>\n";
  }
  std::string rules;
  for (const std::string& rule : AllowRules(record.denials, kRowsMax)) rules += rule;
  if (!rules.empty()) {
    body +=
        "<div class=\"allow\"><p>For requests that are judged by operation, add this to their "
        "endpoint, in OpenShell’s schema:</p><pre>" +
        Text("# " + std::string(advise::kSuggestionWarning) + "\n" + rules, 100000) +
        "</pre></div>\n";
  }
  return Section("Refused requests", "", body);
}

std::string RenderLimitTable(const RunRecord& record) {
  std::string rows;
  for (const LimitRecord& limit : record.limits) {
    if (!limit.limit && !limit.used) continue;
    rows += "<tr><td>" + Text(limit.name) +
            (limit.fired ? " <span class=\"tag error\">reached</span>" : "") + "</td><td>" +
            Text(DescribeLimit(limit)) + "</td><td>";
    if (limit.limit && limit.used && *limit.limit > 0) {
      const double share = std::clamp(*limit.used / *limit.limit, 0.0, 1.0);
      rows += "<progress max=\"1000\" value=\"" + std::to_string(static_cast<int>(share * 1000)) +
              "\"></progress>";
    }
    rows += "</td></tr>\n";
  }
  if (rows.empty()) return {};
  return Section("Limits", "", "<div class=\"scroll\"><table>" + rows + "</table></div>\n");
}

std::string RenderIsolation(const RunRecord& record) {
  if (record.isolation.tier.empty()) return {};
  std::string body = "<ul class=\"controls\">\n";
  for (const ControlRecord& control : record.isolation.controls) {
    body += "<li><span>" + Text(control.name) +
            (control.note.empty() ? "" : "<small>" + Text(control.note, 300) + "</small>") +
            "</span><span>" + Tag(Render(control.state)) + "</span></li>\n";
  }
  body += "</ul>\n";
  for (const WaiverRecord& waiver : record.waivers) {
    body += "<p><span class=\"tag warn\">waiver</span> " + CodeText(waiver.name) + " " +
            Text(waiver.reason) + "</p>\n";
  }
  return Section("Controls", "tier " + record.isolation.tier, body);
}

std::string RenderAgentText(const ReportInput& input) {
  if (input.agent_text.empty()) return {};
  return Section("The agent’s final message", "not verified",
                 "<pre class=\"text\">" + Text(input.agent_text, size_t{64} << 10) + "</pre>\n");
}

std::string RenderTail(const ReportInput& input) {
  if (input.agent_tail.empty()) return {};
  std::string text;
  for (const std::string& line : input.agent_tail) text += line + "\n";
  return Section("The end of the agent's log", "the complete log is in agent.log",
                 "<pre class=\"text\">" + Text(text, size_t{64} << 10) + "</pre>\n");
}

std::string RenderFailures(const RunRecord& record) {
  if (record.failures.empty()) return {};
  std::string rows;
  const size_t shown = std::min(record.failures.size(), kRowsMax);
  for (size_t i = 0; i < shown; ++i) {
    const FailedConnection& failed = record.failures[i];
    rows += "<tr><td>" + CodeText(failed.host + ":" + std::to_string(failed.port)) +
            "</td><td class=\"n\" data-l=\"times\">" + HumanCount(failed.count) +
            "</td><td data-l=\"why\">" + Text(failed.reason, 600) + "</td></tr>\n";
  }
  return Section("Failed connections", "",
                 "<div class=\"scroll\"><table class=\"stack\"><tr class=\"head\"><th>To</th><th "
                 "class=\"n\">Times</th><th>Why</th></tr>\n" +
                     rows + "</table></div>\n" + MoreRows(record.failures.size(), "events.log"));
}

std::string RenderFooter(const RunRecord& record) {
  std::string phases;
  for (const auto& [name, ms] : record.phases_ms) {
    phases += (phases.empty() ? "" : " · ") + Text(name, 60) + " " +
              (ms < 1000 ? HumanCount(ms) + " ms" : HumanDuration(static_cast<double>(ms) / 1000));
  }
  std::string out = "<footer>\n";
  if (!phases.empty()) out += "<p>" + phases + "</p>\n";
  out += "<p>agentic-ci " + Text(record.tool_version, 60) + " · Linux " + Text(record.kernel, 100) +
         " · " + HumanDate(record.started_at_ms);
  if (!record.policy.sha256.empty()) {
    out += " · policy sha256 " + Text(record.policy.sha256.substr(0, 16), 64);
  }
  if (!record.image.digest.empty()) {
    const bool pinned = record.image.reference.ends_with("@" + record.image.digest);
    out += " · image " + Text(record.image.reference, 200) +
           (pinned ? "" : " " + Text(record.image.digest, 100)) + " signed by " +
           Text(record.image.signer, 200);
  }
  return out + "</p>\n</footer>\n";
}

}  // namespace

std::string RenderHtml(const ReportInput& input) {
  const RunRecord& record = input.record;
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta name=\"referrer\" content=\"no-referrer\">\n"
         "<title>agentic-ci: " +
         Text(Headline(record.outcome)) + "</title>\n<style>" + std::string(kHtmlStyle) +
         "</style>\n</head>\n<body>\n<main>\n" + RenderHeader(record) + RenderFindings(record) +
         RenderTail(input) + RenderAgentText(input) + RenderChanged(input) + RenderDenials(record) +
         RenderFailures(record) + RenderLimitTable(record) + RenderIsolation(record) +
         RenderFooter(record) + "</main>\n</body>\n</html>\n";
}

}  // namespace report
