// SPDX-License-Identifier: Apache-2.0
#include "report/read.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "codec/data/digest.h"
#include "codec/text/neutral.h"
#include "report/record_json.h"
#include "report/verdict.h"
#include "report/wording.h"

namespace report {
namespace {

constexpr size_t kJsonBytesMax = size_t{16} << 20;
constexpr size_t kPatchBytesMax = size_t{64} << 20;
constexpr size_t kStatementBytesMax = size_t{32} << 20;

Error NotAReport(const std::string& name, const std::string& why) {
  return Error{Code::kInvalid, name + ": " + why};
}

// A regular file of the report itself, no link and nothing that blocks.
Result<std::string> ReadPart(int directory, const std::string& name, size_t bytes_max) {
  Result<Fd> opened = sys::OpenBeneath(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.ok()) {
    if (opened.error().code == Code::kNotFound) {
      return Error{Code::kNotFound, name + ": no such file in the report"};
    }
    return NotAReport(name, opened.error().what);
  }
  const Fd file = std::move(opened).value();
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0) return Errno("fstat");
  if (!S_ISREG(facts.st_mode)) return NotAReport(name, "not a regular file");
  return sys::ReadAll(file.get(), bytes_max).Context(name);
}

}  // namespace

Result<RunFile> ReadRun(int directory) {
  const std::string run_json = TRY(ReadPart(directory, "run.json", kJsonBytesMax));
  return ParseRun(run_json).Context("run.json");
}

Result<PostedReport> ReadReport(const std::string& directory, const SummaryOptions& options) {
  const Fd from = TRY(sys::Open(directory, O_RDONLY | O_DIRECTORY).Context("reading the report"));
  RunFile run = TRY(ReadRun(from.get()));
  const std::string changes_json = TRY(ReadPart(from.get(), "changes.json", kJsonBytesMax));
  PostedReport report;
  report.files = TRY(ParseChanges(changes_json).Context("changes.json"));
  Result<std::string> patch = ReadPart(from.get(), "changes.patch", kPatchBytesMax);
  if (patch.ok()) {
    report.patch = std::move(patch).value();
  } else if (patch.error().code != Code::kNotFound) {
    return std::move(patch).error();
  }
  Result<std::string> statement = ReadPart(from.get(), kStatementFile, kStatementBytesMax);
  if (statement.ok()) {
    report.statement_sha256 = codec::Sha256Hex(statement.value());
  } else if (statement.error().code != Code::kNotFound) {
    return std::move(statement).error();
  }
  // Suggestions that may be pasted are computed here, not taken from the file.
  std::vector<DeniedRequest*> advised;
  std::vector<advise::Denial> denials;
  for (DeniedRequest& denied : run.record.denials) {
    if (denied.allow_line.empty()) continue;
    advised.push_back(&denied);
    denials.push_back(denied.denial);
  }
  std::vector<std::string> lines = advise::SuggestLines(denials);
  for (size_t i = 0; i < advised.size(); ++i) advised[i]->allow_line = std::move(lines[i]);
  report.record = std::move(run.record);
  report.agent_text = std::move(run.agent_text);
  report.agent_tail = std::move(run.agent_tail);
  report.options = options;
  report.summary_markdown = RenderSummary(report, options);
  const auto plain = [](std::string_view text) { return codec::NeutralLine(text, 300); };
  report.verdict = std::string(Sign(report.record)) + " " +
                   codec::NeutralLine(Badge(report.record.outcome), 100) + ": " +
                   VerdictPlaces(report.record, {plain, plain});
  return report;
}

}  // namespace report
