// SPDX-License-Identifier: Apache-2.0
#include "watch/report_view.h"

#include <map>
#include <string_view>

#include "codec/text/neutral.h"
#include "policy/model/host_pattern.h"
#include "report/denials.h"
#include "report/findings.h"
#include "report/read.h"
#include "report/terminal/live_view.h"
#include "report/terminal/request_lines.h"
#include "report/wording.h"

namespace watch {
namespace {

constexpr size_t kTextBytesMax = 300;

std::string Shown(std::string_view text) { return codec::NeutralLine(text, kTextBytesMax); }

Result<report::PostedReport> Read(const std::string& directory) {
  Result<report::PostedReport> read = report::ReadReport(directory);
  if (read.ok() || read.error().code != Code::kNotFound) return read;
  return Error{Code::kNotFound, directory + " has no report of a run that has ended",
               "agentic-ci report REPORT-DIR"};
}

// "error src/a.js:3: message (rule)"
std::string FindingLine(const report::Finding& finding) {
  std::string place = Shown(finding.path);
  if (finding.line > 0) place += ":" + std::to_string(finding.line);
  return report::Render(finding.severity) + " " + place + (place.empty() ? "" : ": ") +
         Shown(finding.message) + " (" + Shown(finding.rule) + ")";
}

std::string FileLine(const report::ChangedFile& file) {
  std::string paths = file.old_path.empty() ? "" : file.old_path + " to ";
  return Shown(report::Render(file.state) + " " + paths + file.path);
}

// Lines by what tells them apart in two reports.
using Marked = std::map<std::string, std::string>;

Marked FindingsOf(const report::PostedReport& read) {
  Marked lines;
  std::map<std::string, int> seen;
  for (const report::Finding& finding : read.record.findings) {
    const int occurrence = seen[report::Fingerprint(finding, 0)]++;
    lines.emplace(report::Fingerprint(finding, occurrence), FindingLine(finding));
  }
  return lines;
}

Marked FilesOf(const report::PostedReport& read) {
  Marked lines;
  for (const report::ChangedFile& file : read.files) {
    const std::string counts =
        " +" + std::to_string(file.added_lines) + " -" + std::to_string(file.removed_lines);
    lines.emplace(FileLine(file) + counts, FileLine(file) + counts);
  }
  return lines;
}

Result<Marked> HostsOf(const std::string& directory) {
  report::DenialList list = TRY(report::ReadDenials(directory));
  Marked lines;
  auto add = [&](const char* what, const std::string& host, int port) {
    std::string line = Shown(policy::BracketedHost(host)) + ":" + std::to_string(port) + " " + what;
    lines.emplace(line, line);
  };
  for (const report::AllowedRequest& one : list.allowed) add("allowed", one.host, one.port);
  for (const report::DeniedRequest& one : list.denials) {
    add("refused", one.denial.host, one.denial.port);
  }
  return lines;
}

// "findings: 1 gone, 2 new, 3 in both", and the lines of those.
std::string Compare(const std::string& what, const Marked& before, const Marked& after) {
  std::string lines;
  size_t gone = 0;
  size_t added = 0;
  for (const auto& [key, line] : before) {
    if (after.contains(key)) continue;
    ++gone;
    lines += "  - " + line + "\n";
  }
  for (const auto& [key, line] : after) {
    if (before.contains(key)) continue;
    ++added;
    lines += "  + " + line + "\n";
  }
  return what + ": " + std::to_string(gone) + " gone, " + std::to_string(added) + " new, " +
         std::to_string(before.size() - gone) + " in both\n" + lines;
}

std::string CostOf(const report::PostedReport& read) {
  const std::string cost = Shown(report::DescribeCost(read.record.usage));
  return cost.empty() ? "no model was asked" : cost;
}

}  // namespace

Result<std::string> RenderReport(const std::string& directory) {
  report::PostedReport read = TRY(Read(directory));
  report::DenialList requests = TRY(report::ReadDenials(directory));
  std::string text;
  for (const report::RequestEntry& entry : report::RenderRequests(requests, true)) {
    text += entry.text;
  }
  for (const report::ChangedFile& file : read.files) text += "file     " + FileLine(file) + "\n";
  for (const report::Finding* finding : report::InOrder(read.record.findings)) {
    text += "finding  " + FindingLine(*finding) + "\n";
  }
  return text + report::RenderEnd(read.record, directory, {});
}

Result<std::string> RenderReportDifference(const std::string& before, const std::string& after) {
  report::PostedReport first = TRY(Read(before));
  report::PostedReport second = TRY(Read(after));
  Marked first_hosts = TRY(HostsOf(before));
  Marked second_hosts = TRY(HostsOf(after));
  return "outcome: " + Shown(report::Render(first.record.outcome.kind)) + " -> " +
         Shown(report::Render(second.record.outcome.kind)) + "\n" +
         Compare("findings", FindingsOf(first), FindingsOf(second)) +
         Compare("hosts", first_hosts, second_hosts) +
         Compare("files", FilesOf(first), FilesOf(second)) + "cost: " + CostOf(first) + " -> " +
         CostOf(second) + "\n";
}

}  // namespace watch
