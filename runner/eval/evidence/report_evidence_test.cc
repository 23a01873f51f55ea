// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/report_evidence.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/sys.h"
#include "report/record_json.h"

namespace eval {
namespace {

// Returns the ending of a run with this outcome, in which the agent was started or was not.
Ending EndingOf(report::OutcomeKind kind, bool started) {
  std::string directory = "/tmp/report-evidence-test-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  report::RunFile run;
  run.record.outcome.kind = kind;
  run.record.phases_ms = {{"event", 0}, {"policy", 0}, {"sandbox", 1}};
  if (started) run.record.phases_ms.emplace_back("agent", 0);
  REQUIRE(sys::WriteFile(directory + "/run.json", report::RenderRun(run)).ok());
  Ending ending = ReadReportEvidence(directory, {}).ending;
  std::filesystem::remove_all(directory);
  return ending;
}

TEST_CASE("A run fails before its agent starts, or it has evidence") {
  using Kind = report::OutcomeKind;
  for (Kind kind : {Kind::kCredentialRefused, Kind::kGatewayLost, Kind::kSandboxLost,
                    Kind::kSetupFailed, Kind::kTerminated}) {
    CAPTURE(report::Render(kind));
    CHECK(EndingOf(kind, true) == Ending::kLost);
    CHECK(EndingOf(kind, false) == Ending::kNeverRan);
  }
  CHECK(EndingOf(Kind::kSuccess, true) == Ending::kEnded);
  CHECK(EndingOf(Kind::kTimedOut, true) == Ending::kFailed);
}

}  // namespace
}  // namespace eval
