// SPDX-License-Identifier: Apache-2.0
// `agentic-ci stats`: what many runs have in common.
#include <array>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/output.h"
#include "cli/sandbox_command.h"
#include "report/stats/find.h"
#include "report/stats/tally.h"

namespace cli {
namespace {

constexpr int64_t kUnreadShownMax = 10;

constexpr std::string_view kStatsDoc =
    "Count over the reports of many runs. Takes report directories and directories that hold them, "
    "such as a month's artifacts: runs by outcome and day; by task, agent and model, with their "
    "durations, tokens and costs; failures; refused requests, each with the policy line that would "
    "allow it; and phases by duration. Reports are not trusted; those that cannot be read are "
    "named "
    "and counted. The exit status is 66 if no report was read.";

using Renderer = std::string (*)(const report::stats::Overview&);

// In the order of their precedence in messages.
constexpr auto kRenderers = std::to_array<std::pair<std::string_view, Renderer>>(
    {{"json", report::stats::RenderJson},
     {"markdown", report::stats::RenderMarkdown},
     {"html", report::stats::RenderPage}});

Result<int> StatsCommand(const Arguments& arguments) {
  Renderer render = report::stats::RenderText;
  std::string given;
  for (const auto& [name, renderer] : kRenderers) {
    if (!arguments.Has(name)) continue;
    if (!given.empty())
      return Usage("--" + given + " and --" + std::string(name) + " exclude each other");
    given = name;
    render = renderer;
  }
  if (arguments.operands.empty()) {
    return Usage("no directory with reports is given", "agentic-ci stats artifacts/");
  }
  report::stats::Tally tally;
  int64_t unread = 0;
  const auto take = [&](const std::string& path, Result<report::RunFile> run) {
    if (run.ok()) return tally.Add(run.value().record);
    tally.AddUnread();
    if (++unread > kUnreadShownMax) return;
    logging::Warn("not a report", {{"directory", path}, {"why", run.error().what}});
  };
  for (const std::string& directory : arguments.operands) {
    TRY(report::stats::ForEachReport(directory, take));
  }
  const report::stats::Overview overview = tally.Take();
  if (overview.runs == 0) {
    return Error{Code::kNotFound,
                 "no report of a run is in " + arguments.operands.front() +
                     (arguments.operands.size() > 1 ? " and the others" : ""),
                 "agentic-ci stats DIRECTORY-OF-REPORTS"};
  }
  TRY(Print(render(overview)));
  return 0;
}

}  // namespace

Command StatsCommandSpec() {
  return {.name = "stats",
          .carry_out = StatsCommand,
          .operands = "DIR...",
          .doc = kStatsDoc,
          .example =
              "  agentic-ci stats artifacts/2026-11/\n"
              "  agentic-ci stats --html artifacts/ > runs.html\n",
          .options = {kJsonOption,
                      {"markdown", "", "", "Print Markdown, for a step summary or an issue."},
                      {"html", "", "", "Print a page without scripts."}}};
}

}  // namespace cli
