// SPDX-License-Identifier: Apache-2.0
// `agentic-ci watch`: what a person follows; `agentic-ci report` and `stats`: what a person looks
// back at.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/program_places.h"
#include "base/sys.h"
#include "change/repository.h"
#include "cli/error_text.h"
#include "cli/output.h"
#include "cli/sandbox_command.h"
#include "report/stats/find.h"
#include "report/stats/tally.h"
#include "watch/lines.h"
#include "watch/report_view.h"
#include "watch/screen.h"
#include "watch/watch.h"

namespace cli {
namespace {

constexpr std::string_view kDoc =
    "Follow a run or a sandbox until it ends. A run is given by its report directory. Shows each "
    "different request when it is judged, with the line of a policy that would allow a refused "
    "one; for a sandbox, files of the checkout as they change, and limits as they fill. On a "
    "terminal, this is a screen that keys move through; `q` leaves it, and what is watched goes "
    "on. Otherwise, or with `--lines`, each is printed as a line; limits are printed when half, "
    "three quarters and nine tenths are used. At the end, the outcome is printed. The exit status "
    "is 0 even if the run failed.";

constexpr std::string_view kReportDoc =
    "Show what a run did. Lists each different request, each changed file and each finding, and "
    "how the run ended. The exit status is 0 even if the run failed.";
constexpr std::string_view kReportOpenDoc =
    "Open a report's page in the browser. Uses `xdg-open`. Without a display, where there is no "
    "such program outside the checkout, or where the repository cannot be read, the path of the "
    "page is printed. A page that the repository tracks is refused.";
constexpr std::string_view kReportDiffDoc =
    "Compare the reports of two runs. Shows findings that are gone and new, hosts, changed files, "
    "and what the models cost.";

Result<std::string> ReportDirectoryOf(const Arguments& arguments, const std::string& command) {
  if (arguments.operands.size() > 1) {
    return Usage(command + " takes one report directory", "agentic-ci report diff BEFORE AFTER");
  }
  return arguments.operands.empty() ? "agentic-ci-report" : arguments.operands.front();
}

constexpr int64_t kUnreadShownMax = 10;

constexpr std::string_view kStatsDoc =
    "Count over the reports of many runs. Takes report directories and directories that hold them, "
    "such as a month's artifacts: runs by outcome and day; by task, agent and model, with their "
    "durations, tokens and costs; failures; refused requests, each with the policy line that would "
    "allow it; and phases by duration. Reports are not trusted; those that cannot be read are "
    "named and counted. The exit status is 66 if no report was read.";

using Renderer = std::string (*)(const report::stats::Overview&);

constexpr auto kRenderers = std::to_array<std::pair<std::string_view, Renderer>>(
    {{"json", report::stats::RenderJson},
     {"markdown", report::stats::RenderMarkdown},
     {"html", report::stats::RenderPage}});

Result<int> StatsCommand(const Arguments& arguments) {
  Renderer render = report::stats::RenderText;
  std::string given;
  for (const auto& [name, renderer] : kRenderers) {
    if (!arguments.Has(name)) continue;
    if (!given.empty()) {
      return Usage("--" + given + " and --" + std::string(name) + " are mutually exclusive");
    }
    given = name;
    render = renderer;
  }
  if (arguments.operands.empty()) {
    return Usage("no directory with reports is given", "agentic-ci stats artifacts/");
  }
  report::stats::Tally tally;
  const auto take = [&](const std::string& path, Result<report::RunFile> run) {
    if (run.ok()) return tally.Add(run.value().record);
    if (tally.AddUnread() > kUnreadShownMax) return;
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

std::vector<Command> ReportCommands() {
  return {{.name = "report open",
           .carry_out = ReportOpenCommand,
           .operands = "[REPORT-DIR]",
           .doc = kReportOpenDoc,
           .example = "  agentic-ci report open\n",
           .variables = {{"DISPLAY, WAYLAND_DISPLAY", "Whether there is a display."}}},
          {.name = "report diff",
           .carry_out = ReportDiffCommand,
           .operands = "BEFORE AFTER",
           .doc = kReportDiffDoc,
           .example = "  agentic-ci report diff before/agentic-ci-report agentic-ci-report\n"},
          {.name = "report",
           .carry_out = ReportCommand,
           .operands = "[REPORT-DIR]",
           .doc = kReportDoc,
           .example = "  agentic-ci report\n  agentic-ci report artifacts/agentic-ci-report\n"}};
}

Result<int> ReportCommand(const Arguments& arguments) {
  const std::string directory = TRY(ReportDirectoryOf(arguments, "report"));
  std::string text = TRY(watch::RenderReport(directory));
  TRY(Print(text));
  return 0;
}

Result<int> ReportOpenCommand(const Arguments& arguments) {
  const std::string directory = TRY(ReportDirectoryOf(arguments, "report open"));
  const std::string real = TRY(sys::RealPath(directory));
  const std::string page = real + "/report.html";
  struct stat st {};
  if (::lstat(page.c_str(), &st) != 0) return Errno(page);
  if (!S_ISREG(st.st_mode)) return Error{Code::kRefused, page + " is not a file of its own"};
  // A commit may hold a report, whose page a stranger wrote.
  Result<change::Repository> repository = change::Repository::Open(real);
  if (repository.ok() && repository.value().Tracks("report.html")) {
    return Error{Code::kRefused, page + " is a file of the repository, not a run's report"};
  }
  const std::string checkout = repository.ok() ? repository.value().top() : "";
  const ProgramPlaces places(sys::Environment("PATH").value_or(""), checkout);
  const bool is_known = repository.ok() || repository.error().code == Code::kNotFound;
  const bool display = is_known && (sys::Environment("DISPLAY").has_value() ||
                                    sys::Environment("WAYLAND_DISPLAY").has_value());
  const std::string program = display ? places.Find("xdg-open") : "";
  if (!program.empty()) {
    std::array<std::string, 2> words = {program, page};
    std::array<char*, 3> argv = {words[0].data(), words[1].data(), nullptr};
    ::execve(program.c_str(), argv.data(), environ);  // In place of this process.
  }
  TRY(PrintLines(page + "\n"));
  return 0;
}

Result<int> ReportDiffCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 2) {
    return Usage("report diff takes two report directories", "agentic-ci report diff BEFORE AFTER");
  }
  std::string text =
      TRY(watch::RenderReportDifference(arguments.operands[0], arguments.operands[1]));
  TRY(Print(text));
  return 0;
}

Command WatchCommandSpec() {
  return {.name = "watch",
          .carry_out = WatchCommand,
          .operands = "REPORT-DIR|NAME",
          .doc = kDoc,
          .example = "  agentic-ci watch agentic-ci-report\n  agentic-ci watch work --lines\n",
          .options = {{.name = "lines",
                       .value = {},
                       .fallback = {},
                       .doc = "Print lines on a terminal, too."}},
          .variables = {{"TERM", "The kind of terminal. If it is not known, lines are printed."},
                        {"NO_COLOR", "If set, the screen has no colours."}}};
}

Result<int> WatchCommand(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return Usage("watch takes a report directory or the name of a sandbox",
                 "agentic-ci watch agentic-ci-report");
  }
  constexpr std::chrono::milliseconds kStateTime{300};
  auto state = [&](const std::string& name) -> Result<session::SandboxState> {
    const NamedSandbox sandbox = TRY(FindSandbox(name));
    return session::AskState(sandbox.place, name, Deadline::After(kStateTime));
  };
  const std::string& what = arguments.operands.front();
  watch::Watch followed = TRY(watch::Watch::Find(what, state));
  std::unique_ptr<watch::Screen> screen;
  if (!arguments.Has("lines")) screen = watch::Screen::Open(what);
  watch::Lines lines;
  auto read = [&](watch::Look look, std::chrono::milliseconds rest) -> Result<bool> {
    if (screen) {
      screen->Take(std::move(look));
      return screen->Serve(rest);
    }
    std::string text = lines.Render(look);
    if (!text.empty()) TRY(Print(text));
    std::this_thread::sleep_for(rest);
    return true;
  };
  bool ended = TRY(followed.Follow(read));
  screen.reset();
  if (!ended) return watch::Screen::signal() == 0 ? 0 : 128 + watch::Screen::signal();
  std::string end = TRY(followed.RenderEnd());
  TRY(Print(end));
  return 0;
}

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
