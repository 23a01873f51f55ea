// SPDX-License-Identifier: Apache-2.0
#include "cli/github.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/log.h"
#include "base/sys.h"
#include "cli/output.h"
#include "codec/data/json.h"
#include "forge/actions.h"
#include "post/remark.h"
#include "run/credentials.h"
#include "run/run.h"

namespace cli {
namespace {

// One value per line; blanks around it and empty lines mean nothing.
std::vector<std::string> Lines(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    size_t first = line.find_first_not_of(kBlank);
    if (first == std::string_view::npos) continue;
    lines.emplace_back(line.substr(first, line.find_last_not_of(kBlank) - first + 1));
  }
  return lines;
}

Status SetInput(const RunOption& option, const std::string& text, run::Request* request) {
  if (!option.spec.repeatable) return SetOption(option, text, request);
  for (const std::string& line : Lines(text)) TRY(SetOption(option, line, request));
  return Ok();
}

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
  for (const report::Finding& finding : record.findings) {
    std::string path = finding.path.empty() ? "" : record.changes.prefix + finding.path;
    annotations.push_back({post::LevelOf(finding.severity), "agentic-ci: " + finding.rule,
                           finding.message, path, finding.line, finding.end_line});
  }
  return forge::RenderAnnotations(annotations);
}

Status Publish(const forge::Event& event, const run::Request& request,
               const report::PostedReport& posted) {
  TRY(WriteOutputs(event, RunOutputs(posted.record, request.report_dir)));
  TRY(WriteStepSummary(event, posted.summary_markdown));
  if (event.forge == forge::ForgeKind::kNone) return Ok();
  return Print(Annotations(posted.record));
}

Status PublishEnd(const forge::Event& event, const run::Request& request) {
  report::PostedReport posted = TRY(report::ReadReport(request.report_dir));
  return Publish(event, request, posted);
}

// A run that could not start has a report as a rule; without one of this very failure there are
// no outputs but what happened, and no exit-code: there is nothing to post.
Status PublishFailure(const forge::Event& event, const run::Request& request, const Error& error) {
  // What lies in a directory that was refused is not this run's report, whatever it says.
  bool prepared = !error.what.starts_with(run::kPreparingReport);
  Result<report::PostedReport> posted = report::ReadReport(request.report_dir);
  if (prepared && posted.ok() && posted.value().record.outcome.reason.starts_with(error.what)) {
    TRY(Publish(event, request, posted.value()));
  } else {
    TRY(WriteOutputs(event, {{"outcome", report::Render(report::OutcomeKind::kSetupFailed)},
                             {"reason", error.what},
                             {"report-dir", request.report_dir}}));
  }
  if (event.forge == forge::ForgeKind::kNone) return Ok();
  return Print(forge::RenderAnnotations({{forge::Level::kError, "agentic-ci", error.what, "", 0}}));
}

// Nothing that the agent or the repository says between the two lines is a command to the CI.
Result<int> RunQuoted(const run::Request& request) {
  std::string word = TRY(forge::RandomWord());
  TRY(Print(forge::RenderGroupBegin("agentic-ci run") + forge::RenderStopCommands(word)));
  Result<int> status = run::Run(request);
  TRY(Print(forge::RenderResumeCommands(word) + forge::RenderGroupEnd()));
  return status;
}

}  // namespace

Result<run::Request> ParseInputs(std::string_view json) {
  codec::Json inputs = TRY(codec::ParseJson(json).Context("reading INPUTS"));
  if (inputs.object() == nullptr) return Error{Code::kInvalid, "INPUTS is not a JSON object"};
  run::Request request = DefaultRequest();
  for (const RunOption& option : kRunOptions) {
    std::string text = inputs.StringAt(option.spec.name);
    if (!text.empty()) TRY(SetInput(option, text, &request));
  }
  request.command = Lines(inputs.StringAt(kCommandInput.name));
  TRY(CheckRequest(request));
  return request;
}

Outputs RunOutputs(const report::RunRecord& record, const std::string& report_dir) {
  char cost[32] = "";
  if (record.usage.cost_usd) std::snprintf(cost, sizeof cost, "%.6f", *record.usage.cost_usd);
  return {{"exit-code", std::to_string(record.outcome.exit_code)},
          {"outcome", report::Render(record.outcome.kind)},
          {"reason", record.outcome.reason},
          {"report-dir", report_dir},
          {"changed-files", std::to_string(record.changes.files)},
          {"denied-requests", std::to_string(record.denials.size())},
          {"cost-usd", cost}};
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
  std::string word = TRY(forge::RandomWord());
  std::string text = TRY(forge::RenderOutputs(outputs, word));
  return Append(event.output_path, text);
}

Result<int> ActionCommand(const Arguments&) {
  std::optional<std::string> inputs = sys::Environment("INPUTS");
  if (!inputs) return Error{Code::kSetup, "INPUTS is not set", "INPUTS: ${{ toJSON(inputs) }}"};
  run::Request request = TRY(ParseInputs(*inputs));
  forge::Event event = TRY(forge::ReadEvent(sys::Environment));
  logging::SetQuiet(request.json);
  bool on_forge = event.forge != forge::ForgeKind::kNone;
  if (on_forge) TRY(PrintMasks(request));
  Result<int> status = on_forge ? RunQuoted(request) : run::Run(request);
  if (!status.ok()) {
    TRY(PublishFailure(event, request, status.error()));
  } else if (!request.plan_only) {
    TRY(PublishEnd(event, request));
  }
  return status;
}

}  // namespace cli
