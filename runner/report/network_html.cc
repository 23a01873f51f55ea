// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "advise/suggest.h"
#include "report/findings.h"
#include "report/host_groups.h"
#include "report/page_parts.h"
#include "report/wording.h"

namespace report::page {
namespace {

constexpr size_t kRequestsMax = 100;  // The requests of one host.
constexpr size_t kNamesMax = 200;     // The names in one fold.
constexpr size_t kGroupsMax = 300;
constexpr size_t kRequestsAllMax = 3000;

std::string CountOf(const HostGroup& group) {
  std::string out;
  const auto add = [&out](int64_t count, std::string_view kind, std::string_view word) {
    if (count <= 0) return;
    out += " <span class=\"" + std::string(kind) + "\">" + HumanCount(count) + " " +
           std::string(word) + "</span>";
  };
  add(group.refused, "bad", "refused");
  add(group.failed, "warn", "failed");
  add(group.allowed, "good", "allowed");
  return out;
}

std::string_view AnswerSign(HostRequest::Answer answer) {
  switch (answer) {
    case HostRequest::Answer::kRefused:
      return "<span class=\"bad\">✕ refused</span>";
    case HostRequest::Answer::kFailed:
      return "<span class=\"warn\">! failed</span>";
    case HostRequest::Answer::kAllowed:
      return "<span class=\"good\">✓ allowed</span>";
  }
  return {};
}

std::string RenderRequests(const HostGroup& group, size_t* left) {
  std::string rows;
  const size_t shown = std::min({group.requests.size(), kRequestsMax, *left});
  *left -= shown;
  for (size_t i = 0; i < shown; ++i) {
    const HostRequest& one = group.requests[i];
    rows += "<tr><td>" + std::string(AnswerSign(one.answer)) + "</td><td class=\"n\">" +
            HumanCount(one.count) + " ×</td><td>" + CodeText(one.text) + "</td><td>" +
            (one.binary.empty() ? "" : CodeText(one.binary)) + "</td><td>" + Text(one.reason, 600) +
            "</td></tr>\n";
  }
  return "<table class=\"stack\"><thead><tr><th>Answer</th><th class=\"n\">Times</th><th>Request"
         "</th><th>Program</th><th>Why</th></tr></thead><tbody>\n" +
         rows + "</tbody></table>\n" + MoreRows(group.requests.size(), shown, "events.log");
}

std::string RenderNames(const HostGroup& group) {
  std::string names;
  const size_t shown = std::min(group.hosts.size(), kNamesMax);
  for (size_t i = 0; i < shown; ++i) names += Text(group.hosts[i], 300) + "\n";
  return "<p class=\"row\">" + HumanCount(static_cast<int64_t>(group.hosts.size())) +
         " similar names. Names can carry data out, so no rule is suggested for these.</p><pre "
         "class=\"text\">" +
         names + "</pre>\n" + MoreRows(group.hosts.size(), shown, "events.log");
}

std::string RenderGroup(const HostGroup& group, size_t* left) {
  std::string programs;
  for (const std::string& program : group.programs) {
    const size_t slash = program.rfind('/');
    programs += (programs.empty() ? "" : ", ") +
                Text(slash == std::string::npos ? program : program.substr(slash + 1), 100);
  }
  const char* kind = group.refused > 0 ? "bad" : group.failed > 0 ? "warn" : "good";
  const char* sign = group.refused > 0 ? "✕" : group.failed > 0 ? "!" : "✓";
  return "<details class=\"host\"><summary><span class=\"" + std::string(kind) +
         "\" aria-hidden=\"true\">" + sign + "</span> " + CodeText(group.name) +
         "<span class=\"counts\">" + CountOf(group) + "</span><span class=\"soft\"> " + programs +
         "</span></summary>\n" + (group.hosts.size() > 1 ? RenderNames(group) : "") +
         RenderRequests(group, left) + "</details>\n";
}

// The lines once, the warning once.
std::string RenderAdvice(const RunRecord& record) {
  const std::vector<DeniedRequest> denials = DenialsToAdvise(record);
  const std::string warning = "# " + std::string(advise::kSuggestionWarning) + "\n";
  std::string body;
  if (const std::vector<std::string> lines = AllowLines(denials); !lines.empty()) {
    std::string yaml = warning + "endpoints:\n";
    for (size_t i = 0; i < std::min(lines.size(), kRowsMax); ++i) {
      yaml += "  - \"" + lines[i] + "\"\n";
    }
    if (lines.size() > kRowsMax) yaml += "  # more in policy-suggestion.yml\n";
    body += "<p class=\"row\">If the agent needs these requests, add this to <code>" +
            Text(PolicyFileOf(record), 200) +
            "</code> (<code>policy-suggestion.yml</code> has the "
            "same hosts, and no more than these requests):</p><pre class=\"text\">" +
            Text(yaml, 100000) + "</pre>\n";
  }
  std::string rules;
  for (const std::string& rule : AllowRules(denials, kRowsMax)) rules += rule;
  if (!rules.empty()) {
    body +=
        "<p class=\"row\">For requests that write, or are judged by operation, add this to their "
        "endpoint, in the form that <code>agentic-ci policy export --to openshell</code> "
        "prints:</p><pre class=\"text\">" +
        Text((body.empty() ? warning : "") + rules, 100000) + "</pre>\n";
  }
  return body.empty() ? "" : Card("What would allow them", body, "allow");
}

}  // namespace

std::string RenderNetwork(const ReportInput& input) {
  const RunRecord& record = input.record;
  const std::vector<HostGroup> groups = GroupHosts(record, input.allowed);
  std::string body;
  size_t left = kRequestsAllMax;
  int64_t requests = 0;
  int64_t hosts = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    requests += groups[i].refused + groups[i].failed + groups[i].allowed;
    hosts += static_cast<int64_t>(groups[i].hosts.size());
    if (i < kGroupsMax) body += RenderGroup(groups[i], &left);
  }
  body += MoreRows(groups.size(), kGroupsMax, "events.log");
  const int64_t dropped = std::max<int64_t>(0, record.denials_dropped);
  if (dropped > 0) {
    body += "<p class=\"row\">" + Plural(dropped, "more record") +
            " of refused requests: see <code>events.log</code></p>\n";
  }
  if (input.allowed_dropped > 0) {
    body += "<p class=\"row soft\">" + Plural(input.allowed_dropped, "more allowed request") +
            ": see <code>events.log</code></p>\n";
  }
  if (body.empty()) body = "<p class=\"row soft\">The agent asked for no host.</p>\n";
  return Card("Network <small>" + Plural(requests, "request") + " to " + Plural(hosts, "host") +
                  "</small>",
              body) +
         RenderAdvice(record);
}

}  // namespace report::page
