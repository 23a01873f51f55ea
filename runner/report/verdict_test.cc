// SPDX-License-Identifier: Apache-2.0
#include "report/verdict.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

RunRecord Succeeded() {
  RunRecord record;
  record.outcome = {OutcomeKind::kSuccess, "", "", 0, 0};
  record.changes = {4, 18, 3, 100, false, true};
  return record;
}

Finding Refusing(const std::string& rule, const std::string& path, int line = 0) {
  return {FindingSource::kGate, rule, Severity::kError, "m", path, line, true};
}

const Quoting kQuoting = {[](std::string_view place) { return "<" + std::string(place) + ">"; },
                          [](std::string_view text) { return std::string(text); }};

TEST_CASE("Done is good only when nothing is left to look at") {
  RunRecord record = Succeeded();
  CHECK(ToneOf(record) == Tone::kGood);
  CHECK(VerdictLine(record) == "4 files changed (+18 −3).");
  SECTION("refused requests") { record.denials.emplace_back(); }
  SECTION("a limit") { record.limits = {{"disk", 1, 1, "bytes", true}}; }
  SECTION("a finding") {
    record.findings = {{FindingSource::kAgent, "r", Severity::kWarning, "m", "", 0, false}};
  }
  SECTION("unread records") { record.denials_dropped = 1; }
  SECTION("an incomplete list") { record.changes.complete = false; }
  CHECK(ToneOf(record) == Tone::kWarn);
}

TEST_CASE("A refusal is counted by rule, and named by place") {
  RunRecord record = Succeeded();
  record.outcome.kind = OutcomeKind::kRefused;
  record.findings = {Refusing("secrets", "config.env", 2), Refusing("protected-paths", "ci.yml"),
                     Refusing("protected-paths", "b.yml"), Refusing("own-gate", "c")};
  CHECK(VerdictLine(record) ==
        "1 secret, 2 protected paths and 1 finding of own-gate in the patch. Nothing was applied.");
  CHECK(VerdictPlaces(record, kQuoting) ==
        "secret <config.env:2>, protected path <ci.yml>, and 2 more. Nothing was applied.");
  CHECK(Causes(record, 50).size() == 4);
  CHECK(Causes(record, 3).size() == 3);
  CHECK(Causes(record, 50)[0].finding == 0);
}

TEST_CASE("Findings that fail a run are counted once in its title") {
  RunRecord record = Succeeded();
  record.findings = {{FindingSource::kAgent, "r", Severity::kError, "m", "a.c", 1, false}};
  record.denials.emplace_back();
  record.denials[0].count = 1;
  CHECK(VerdictLine(record) == "1 error. 4 files changed (+18 −3). 1 request refused.");
  record.outcome = {
      OutcomeKind::kFindings, "", "the agent found 1 error, and fail_on is error", 1, {}};
  const std::string title =
      "The agent found 1 error, and fail_on is error. 4 files changed (+18 −3). 1 request refused.";
  CHECK(VerdictLine(record) == title);
  CHECK(VerdictPlaces(record, kQuoting) == title);
}

TEST_CASE("The worst findings are the agent's, errors first, and at most three") {
  RunRecord record = Succeeded();
  record.findings = {Refusing("secrets", "config.env", 2)};
  for (const char* message : {"note", "warning", "warning", "error"}) {
    const Severity severity = message == std::string_view("note")    ? Severity::kNote
                              : message == std::string_view("error") ? Severity::kError
                                                                     : Severity::kWarning;
    record.findings.push_back({FindingSource::kAgent, "r", severity, message, "a.c", 1, false});
  }
  std::vector<std::string> messages;
  for (const Finding* finding : WorstFindings(record)) messages.push_back(finding->message);
  CHECK(messages == std::vector<std::string>{"error", "warning", "warning"});
}

TEST_CASE("Refused hosts are named once each, and those beyond three are counted") {
  RunRecord record = Succeeded();
  CHECK(ListRefusedHosts(record, kQuoting.place).empty());
  const auto refuse = [&](const char* host) {
    record.denials.emplace_back();
    record.denials.back().denial.host = host;
  };
  for (const char* host : {"a", "b", "a", "c"}) refuse(host);
  CHECK(ListRefusedHosts(record, kQuoting.place) == "<a>, <b>, <c>");
  refuse("d");
  CHECK(ListRefusedHosts(record, kQuoting.place) == "<a>, <b>, <c> and 1 more host");
}

TEST_CASE("What was refused before there was a patch says why") {
  RunRecord record;
  record.outcome = {OutcomeKind::kRefused, "", "the image is not signed", 77, {}};
  CHECK(VerdictPlaces(record, kQuoting) == "The image is not signed.");
  REQUIRE(Causes(record, 50).size() == 1);
  CHECK(Causes(record, 50)[0].decided);
}

TEST_CASE("A limit that ended the run is one cause, with its use and the option that raises it") {
  RunRecord record;
  record.outcome = {OutcomeKind::kTimedOut, "", "the time limit ended the agent", 124, {}};
  record.limits = {{"wall", 60, 60, "s", true}, {"disk", 1024, 1024, "bytes", true}};
  const std::vector<Cause> causes = Causes(record, 50);
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].what == "The time limit ended the agent (1 min of 1 min).");
  CHECK(causes[0].advice.find("--timeout") != std::string::npos);
  CHECK_FALSE(causes[1].decided);
  CHECK(causes[1].advice.find("--disk") != std::string::npos);
}

TEST_CASE("A policy is short in the status line") {
  CHECK(ShortPolicy({"repository", "p.yml", "main", "6d05064abcdef", ""}) == "main@6d05064");
  CHECK(ShortPolicy({"repository", "p.yml", "6d05064abcdef", "6d05064abcdef", ""}) == "6d05064");
  CHECK(ShortPolicy({"file", "/etc/a/strict.yml", "", "", ""}) == "strict.yml");
  CHECK(ShortPolicy({"default", "", "", "", ""}) == "built-in default");
}

}  // namespace
}  // namespace report
