// SPDX-License-Identifier: Apache-2.0
#include "cli/github.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/log.h"
#include "base/sys.h"
#include "cli/commands.h"
#include "cli/config_command.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/run_command.h"
#include "forge/actions.h"
#include "forge/open/open.h"
#include "post/remark.h"
#include "report/findings.h"
#include "run/credentials.h"
#include "run/run.h"

namespace cli {
namespace {

Status Append(const std::string& path, std::string_view bytes) {
  if (bytes.empty()) return Ok();
  Fd file = TRY(sys::Open(path, O_WRONLY | O_APPEND | O_CREAT, 0644));
  return sys::WriteAll(file.get(), bytes).Context("writing " + path);
}

// The log must not show a credential, not even where a program prints its own environment.
Status PrintMasks(const run::Request& request) {
  for (const std::string& variable : run::CredentialVariables(request)) {
    std::optional<std::string> value = sys::Environment(variable);
    // A path says nothing, and many lines have one.
    bool masked = value && !value->starts_with('/');
    if (masked) TRY(Print(forge::RenderMask(*value)));
  }
  return Ok();
}

std::string Annotations(const report::RunRecord& record) {
  std::vector<forge::Annotation> annotations;
  for (const report::Finding* told : report::InOrder(record.findings)) {
    const report::Finding& finding = *told;
    std::string path = finding.path.empty() ? "" : record.changes.prefix + finding.path;
    annotations.push_back({post::LevelOf(finding.severity), "agentic-ci: " + finding.rule,
                           finding.message, path, finding.line, finding.end_line});
  }
  return forge::RenderAnnotations(annotations);
}

Status Publish(const forge::Event& event, const run::Request& request,
               const report::PostedReport& posted) {
  TRY(WriteOutputs(event, RunOutputs(posted.record, request.report_dir, request.post)));
  TRY(WriteStepSummary(event, posted.summary_markdown));
  if (!forge::ReadsWorkflowCommands(event.forge)) return Ok();
  return Print(Annotations(posted.record));
}

Status PublishEnd(const forge::Event& event, const run::Request& request) {
  report::PostedReport posted = TRY(report::ReadReport(request.report_dir, LinksOf(event)));
  return Publish(event, request, posted);
}

// A run that could not start has a report as a rule; without one of this very failure there are
// no outputs but what happened: there is nothing to upload and nothing to post.
Status PublishFailure(const forge::Event& event, const run::Request& request, const Error& error) {
  Result<report::PostedReport> posted = report::ReadReport(request.report_dir, LinksOf(event));
  if (error.kind == ErrorKind::kReported && posted.ok()) {
    TRY(Publish(event, request, posted.value()));
  } else {
    const auto kind = error.code == Code::kNothingToDo ? report::OutcomeKind::kSkipped
                                                       : report::OutcomeKind::kSetupFailed;
    TRY(WriteOutputs(event, {{"conclusion", report::Render(kind)}, {"reason", error.what}}));
  }
  if (error.code == Code::kNothingToDo) return Ok();
  if (!forge::ReadsWorkflowCommands(event.forge)) return Ok();
  return Print(forge::RenderAnnotations({{forge::Level::kError, "agentic-ci", error.what, "", 0}}));
}

// Runs between two lines, so that nothing that the agent or the repository says is a command to the
// CI.
Result<int> RunQuoted(const run::Request& request) {
  std::string word = sys::RandomHex();
  TRY(Print(forge::RenderGroupBegin("agentic-ci run") + forge::RenderStopCommands(word)));
  Result<int> status = RunInBackend(request);
  TRY(Print(forge::RenderResumeCommands(word) + forge::RenderGroupEnd()));
  return status;
}

bool AllEnforced(const report::IsolationRecord& isolation) {
  const std::vector<report::ControlRecord>& controls = isolation.controls;
  return !controls.empty() &&
         std::none_of(controls.begin(), controls.end(), [&](const report::ControlRecord& control) {
           const bool of_the_tier = isolation.tier == "landlock" && control.name == "namespaces";
           return control.state == report::ControlState::kUnavailable && !of_the_tier;
         });
}

}  // namespace

Outputs RunOutputs(const report::RunRecord& record, const std::string& report_dir,
                   const std::string& post) {
  const report::UsageRecord& usage = record.usage;
  char cost[32] = "";
  if (usage.cost_usd) std::snprintf(cost, sizeof cost, "%.6f", *usage.cost_usd);
  auto in_report = [&](const char* name) { return report_dir + "/" + name; };
  return {{"conclusion", report::Render(record.outcome.kind)},
          {"reason", record.outcome.reason},
          {"exit-code", std::to_string(record.outcome.exit_code)},
          {"report-dir", report_dir},
          {"report-path", in_report("report.html")},
          {"patch-path", record.changes.files > 0 ? in_report("changes.patch") : ""},
          {"sarif-path", in_report("findings.sarif")},
          {"changed-files", std::to_string(record.changes.files)},
          {"findings-count", std::to_string(record.findings.size())},
          {"blocked-count", std::to_string(record.denials.size())},
          {"enforced", AllEnforced(record.isolation) ? "true" : "false"},
          {"cost-usd", cost},
          {"tokens", std::to_string(usage.tokens())},
          {"version", record.tool_version},
          {"task", record.agent.task},
          {"post", post}};
}

report::SummaryOptions LinksOf(const forge::Event& event) {
  // A run's artifacts are a part of its page on GitHub; elsewhere the run links to them. A report
  // that was made by another run is not among them.
  const forge::Facts& facts = forge::FactsOf(event.forge);
  const bool there =
      !facts.artifacts_anchor.empty() && !event.run_url.empty() && event.name != "workflow_run";
  return {.report_url = there ? event.run_url + std::string(facts.artifacts_anchor) : "",
          .run_url = event.run_url,
          .pages = {event.server_url + "/" + event.repository, std::string(facts.name)}};
}

Status WriteStepSummary(const forge::Event& event, std::string_view markdown) {
  if (event.step_summary_path.empty()) return Ok();
  struct stat st {};
  size_t bytes_there = ::stat(event.step_summary_path.c_str(), &st) == 0
                           ? static_cast<size_t>(st.st_size)
                           : 0;  // The runner makes the file; a missing one is an empty one.
  return Append(event.step_summary_path, forge::RenderStepSummary(markdown, bytes_there));
}

Status WriteOutputs(const forge::Event& event, const Outputs& outputs) {
  if (event.output_path.empty()) return Ok();
  std::string word = sys::RandomHex();
  std::string text = TRY(forge::RenderOutputs(outputs, word));
  return Append(event.output_path, text);
}

Result<int> ActionCommand(const Arguments&) {
  std::vector<OptionSpec> options = {kCommandInput};
  for (const RunOption& option : kRunOptions) options.push_back(option.spec);
  Inputs inputs = TRY(ReadInputs(sys::Environment, options));
  run::Request request = TRY(ReadRunInputs(inputs));
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  logging::SetQuiet(request.json || request.quiet);
  bool on_forge = forge::ReadsWorkflowCommands(event.forge);
  // A task that cannot be read is the run's to report.
  Result<run::Request> resolved = run::ResolveRequest(request, TaskOptionRules());
  if (on_forge) TRY(PrintMasks(resolved.ok() ? resolved.value() : request));
  std::string post = resolved.ok() ? resolved.value().post : "";
  Status filled = CheckOwnWorkflow();
  Result<int> status = !filled.ok() ? Result<int>(std::move(filled).error())
                       : on_forge   ? RunQuoted(request)
                                    : RunInBackend(request);
  request.post = std::move(post);
  if (!status.ok()) {
    TRY(PublishFailure(event, request, status.error()));
  } else if (request.plan_only) {
    TRY(WriteOutputs(event, {{"conclusion", "planned"}}));
  } else {
    TRY(PublishEnd(event, request));
  }
  return status;
}

Result<int> ActionPostCommand(const Arguments&) {
  Command post = TRY(SelectCommand(Commands(), {"post"}));
  std::vector<OptionSpec> options = post.options;
  options.push_back(kReportDirInput);
  Inputs inputs = TRY(ReadInputs(sys::Environment, options));
  Arguments arguments = TRY(ReadPostInputs(inputs, post.options));
  return PostCommand(arguments);
}

}  // namespace cli
