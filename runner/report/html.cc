// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <algorithm>

#include "codec/text/neutral.h"
#include "report/page_parts.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report {
namespace {

using page::Card;
using page::Text;

std::string_view NameOf(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "good";
    case Tone::kWarn:
      return "warn";
    case Tone::kBad:
      return "bad";
  }
  return {};
}

// `html` as a link, where there is an address.
std::string LinkedTo(const std::string& url, const std::string& html) {
  return url.empty() ? html : "<a href=\"" + Text(url) + "\" rel=\"noreferrer\">" + html + "</a>";
}

std::string DescribeEvent(const EventRecord& event) {
  if (event.repository.empty()) return {};
  const WebPages pages = PagesOf(event);
  std::string name = Text(event.repository, 200);
  if (event.number > 0) name += " " + pages.Reference(event.number);
  std::string out = "<b>" + LinkedTo(pages.Proposal(event.number), name) + "</b>";
  if (!event.head_ref.empty()) {
    out += " " + Text(event.head_ref, 200);
    if (!event.base_ref.empty()) out += " → " + Text(event.base_ref, 200);
  }
  if (event.from_fork) out += ", from a fork";
  if (!event.head_sha.empty()) {
    const std::string head = "<code>" + Text(event.head_sha.substr(0, 7)) + "</code>";
    out += " at " + LinkedTo(pages.Commit(event.head_sha), head);
  }
  if (IsPlainUrl(event.run_url)) out += " · " + LinkedTo(event.run_url, "run");
  return out;
}

std::string RenderStatusLine(const RunRecord& record) {
  const std::string model = record.usage.model.empty() ? record.agent.model : record.usage.model;
  std::string agent = Text(record.agent.name, 100);
  if (!model.empty()) agent += ", " + Text(model, 100);
  std::string controls;
  if (!record.isolation.tier.empty()) controls = "tier " + Text(record.isolation.tier, 40);
  if (!record.isolation.controls.empty()) {
    const bool all =
        CountEnforced(record.isolation) == static_cast<int64_t>(record.isolation.controls.size());
    controls = "<span class=\"" + std::string(all ? "good" : "warn") + "\">" + (all ? "✓ " : "! ") +
               controls + ", " + DescribeControls(record.isolation) + " enforced</span>";
  }
  std::string out;
  for (const std::string& part :
       {DescribeEvent(record.event), Text(NameOfRun(record), 200), agent,
        HumanDuration(DurationSeconds(record)),
        record.usage.turns > 0 ? Plural(record.usage.turns, "turn") : std::string(),
        Text(DescribeCost(record.usage), 300), "policy " + Text(ShortPolicy(record.policy), 200),
        controls}) {
    if (!part.empty()) out += "<span class=\"part\">" + part + "</span>\n";
  }
  return out;
}

struct Tab {
  std::string_view id;
  std::string_view name;
  std::string note;  // Says how much is there; may be empty.
  std::string html;
};

std::string CountOf(size_t count) {
  return count == 0 ? "" : HumanCount(static_cast<int64_t>(count));
}

std::string RenderLog(const ReportInput& input) {
  if (input.log.empty()) return "<p class=\"soft\">The agent wrote no log.</p>\n";
  return Card("The agent’s log",
              (input.log_cut ? "<p class=\"row soft\">The beginning is in <code>agent.log</code>."
                               "</p>\n"
                             : "") +
                  std::string("<pre class=\"text log\">") + Text(input.log, size_t{1} << 20) +
                  "</pre>\n");
}

std::vector<Tab> MakeTabs(const ReportInput& input) {
  const RunRecord& record = input.record;
  const page::ChangesHtml changes = page::RenderChanges(input);
  const int64_t refused = CountAttempts(record);
  const auto causes = static_cast<size_t>(std::count_if(
      record.findings.begin(), record.findings.end(), [](const Finding& f) { return f.refuses; }));
  std::vector<Tab> tabs;
  tabs.push_back({"verdict", "Verdict", CountOf(causes), page::RenderVerdict(input, changes)});
  tabs.push_back({"changes", "Changes", CountOf(input.files.size()), changes.html});
  tabs.push_back({"network", "Network", refused > 0 ? HumanCount(refused) + " refused" : "",
                  page::RenderNetwork(input)});
  if (!input.transcript.empty() || !input.prompt.empty()) {
    tabs.push_back({"transcript", "Transcript", CountOf(input.transcript.size()),
                    page::RenderTranscript(input)});
  }
  tabs.push_back({"log", "Log", "", RenderLog(input)});
  tabs.push_back({"sandbox", "Sandbox", "", page::RenderSandbox(record)});
  return tabs;
}

std::string RenderHeader(const RunRecord& record, const std::vector<Tab>& tabs) {
  const std::string tone(NameOf(ToneOf(record)));
  std::string out = "<header>\n<h1><span class=\"badge " + tone + "\">" +
                    Text(Badge(record.outcome), 100) + "</span> " + Text(VerdictLine(record), 600) +
                    "</h1>\n<p class=\"status\">" + RenderStatusLine(record) +
                    "</p>\n<nav class=\"tabs\" aria-label=\"Report\">\n";
  for (const Tab& tab : tabs) {
    out += "<a href=\"#" + std::string(tab.id) + "\">" + std::string(tab.name) +
           (tab.note.empty() ? "" : " <span class=\"count\">" + tab.note + "</span>") + "</a>\n";
  }
  return out + "</nav>\n</header>\n";
}

}  // namespace

std::string RenderHtml(const ReportInput& input) {
  const RunRecord& record = input.record;
  const std::vector<Tab> tabs = MakeTabs(input);
  std::string out =
      page::PageHead(Text(Badge(record.outcome), 100) + ": " + Text(VerdictLine(record), 200)) +
      RenderHeader(record, tabs) + "<main>\n";
  for (const Tab& tab : tabs) {
    out += "<section id=\"" + std::string(tab.id) + "\" aria-label=\"" + std::string(tab.name) +
           "\">\n" + tab.html + "</section>\n";
  }
  return out + "</main>\n<footer>agentic-ci " + Text(record.tool_version, 60) + " · " +
         HumanDate(record.started_at_ms) + "</footer>\n</body>\n</html>\n";
}

}  // namespace report
