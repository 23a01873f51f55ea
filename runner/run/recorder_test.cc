// SPDX-License-Identifier: Apache-2.0
#include "run/recorder.h"

#include <catch2/catch.hpp>
#include <string>

#include "report/findings.h"
#include "report/summary.h"

namespace run {
namespace {

report::Finding Finding(const std::string& text) {
  report::Finding finding;
  finding.source = report::FindingSource::kAgent;
  finding.rule = "r " + text;
  finding.path = text + "/a.c";
  finding.line = finding.end_line = 1;
  finding.message = "look: " + text;
  finding.suggestion = "a = \"" + text + "\"\n";
  return finding;
}

TEST_CASE("What has the form of a credential is in no text of the record") {
  const std::string token = "ghp_" + std::string(36, 'a');
  Recorder recorder(Request{});
  report::AgentFindings found;
  found.findings = {Finding(token), Finding("plain")};
  found.mistakes = {"findings[3]: " + token};
  recorder.Note(found);
  change::ChangeSet changes;
  changes.files.emplace_back().path = token + ".txt";
  recorder.Note(changes, "", "");
  const report::ReportInput& input = recorder.Finish();
  const report::RunRecord& record = input.record;
  for (const std::string& text : {report::RenderSummary(input, {}), report::RenderSarif(record, ""),
                                  report::RenderCodeQuality(record), report::RenderSast(record),
                                  record.findings[2].message, input.files[0].path}) {
    CHECK(text.find(token) == std::string::npos);
    CHECK(text.find("redacted:") != std::string::npos);
  }
  REQUIRE(record.findings.size() == 3);
  CHECK_FALSE(record.findings[0].suggestion);  // Not what the agent suggested.
  CHECK(record.findings[1].suggestion == "a = \"plain\"\n");
  CHECK(record.findings[1].message == "look: plain");
}

TEST_CASE("What keeps a run from starting is told apart by what may be posted of it") {
  const auto kind = [](Code code, bool untrusted) {
    Recorder recorder(Request{});
    if (untrusted) recorder.NoteUntrusted();
    recorder.NoteFailure({code, "why"});
    return recorder.record().outcome.kind;
  };
  CHECK(kind(Code::kSetup, false) == report::OutcomeKind::kSetupFailed);
  CHECK(kind(Code::kRefused, false) == report::OutcomeKind::kRefused);
  CHECK(kind(Code::kNothingToDo, false) == report::OutcomeKind::kSkipped);
  // Of a stranger, or of who could not be asked about.
  CHECK(kind(Code::kRefused, true) == report::OutcomeKind::kUntrusted);
  CHECK(kind(Code::kTemporary, true) == report::OutcomeKind::kUntrusted);
  Recorder over(Request{});
  over.NoteOverBudget();
  over.NoteFailure({Code::kRefused, "why"});
  CHECK(over.record().outcome.kind == report::OutcomeKind::kBudget);
  CHECK(over.record().outcome.exit_code == 77);
}

}  // namespace
}  // namespace run
