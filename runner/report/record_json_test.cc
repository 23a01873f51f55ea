// SPDX-License-Identifier: Apache-2.0
#include "report/record_json.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

RunFile Sample() {
  RunFile run;
  RunRecord& record = run.record;
  record.tool_version = "0.1.0";
  record.started_at_ms = 1795294532000;
  record.event = {"github", "pull_request", "o/r", 7,    "someone", "main",
                  "b",      "topic",        "h",   true, ""};
  record.policy = {"repository", "p.yml", "main", "c0ffee", "ab"};
  record.agent = {"command", "", "", "", {"sh", "-c", "true"}};
  record.isolation = {
      "namespaces", std::string(32, 'd'), {{"landlock", ControlState::kEmulated, "note"}}};
  record.limits = {{"wall", 60, std::nullopt, "s", true}};
  record.outcome = {OutcomeKind::kLimit, "memory", "why", 125, 137};
  record.phases_ms = {{"policy", 3}};
  record.usage.cost_usd = 0.25;
  record.changes = {1, 2, 3, 4, true, false, "sub/"};
  record.findings = {{FindingSource::kAgent, "r", Severity::kNote, "m", "p", 9, true, 11, "new\n"}};
  record.denials = {
      {{"h.example", 443, "GET", "/p", "/bin/x"}, "no", 5, "h.example:443:read-only", "p.yml:7:9"}};
  record.denials[0].denial.protocol = "graphql";
  record.denials[0].denial.operations = {{"mutation", "N", {"a", "b"}, "", "", ""}};
  record.failures = {{"a.example", 443, "no address", 2}};
  record.waivers = {{"host-network", "because"}};
  run.agent_text = "bye";
  run.agent_tail = {"one", "two"};
  return run;
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("A record that was written is read back as it was") {
  const RunFile run = Sample();
  const std::string json = RenderRun(run);
  const RunFile back = ParseRun(json).value();
  CHECK(RenderRun(back) == json);
  const RunRecord& record = back.record;
  CHECK(record.event.from_fork);
  CHECK(record.event.number == 7);
  CHECK(record.isolation.controls.at(0).state == ControlState::kEmulated);
  CHECK(record.limits.at(0).limit == 60.0);
  CHECK_FALSE(record.limits.at(0).used);
  CHECK(record.outcome.kind == OutcomeKind::kLimit);
  CHECK(record.outcome.agent_status == 137);
  CHECK(record.phases_ms.at(0).second == 3);
  CHECK(record.usage.cost_usd == 0.25);
  CHECK_FALSE(record.changes.complete);
  CHECK(record.findings.at(0).source == FindingSource::kAgent);
  CHECK(record.denials.at(0).denial.port == 443);
  CHECK(record.denials.at(0).denial.operations == run.record.denials.at(0).denial.operations);
  CHECK(record.waivers.at(0).reason == "because");
  CHECK(back.agent_text == "bye");
  CHECK(back.agent_tail.size() == 2);
}

TEST_CASE("A record that is not one is refused with the place") {
  const std::string json = RenderRun(Sample());
  const auto fault = [](const std::string& text) { return ParseRun(text).error().what; };
  CHECK(fault(Replace(json, "\"version\": 1", "\"version\": 2")) ==
        "version: 2 is not supported; expected 1");
  CHECK(fault(Replace(json, "\"kind\": \"limit\"", "\"kind\": \"fine\"")) ==
        "outcome.kind: unknown value");
  CHECK(fault(Replace(json, "\"exit_code\": 125", "\"exit_code\": 1.5")) ==
        "outcome.exit_code: not a whole number");
  CHECK(fault(Replace(json, "\"number\": 7", "\"number\": 99999999999999999")) ==
        "event.number: out of range");
  CHECK(fault(Replace(json, "\"tool_version\"", "\"x\"")) == "tool_version: missing");
  CHECK(fault(Replace(json, "\"state\": \"emulated\"", "\"state\": null")) ==
        "isolation.controls[].state: not a string");
  CHECK(fault(Replace(json, "\"from_fork\": true", "\"from_fork\": 1")) ==
        "event.from_fork: not a boolean");
  CHECK(fault("[]") == "not an object");
  CHECK(ParseRun("{").error().code == Code::kInvalid);
}

TEST_CASE("A port from a hostile record that is none becomes 0") {
  const std::string json = Replace(RenderRun(Sample()), "\"port\": 443", "\"port\": 70000");
  CHECK(ParseRun(json).value().record.denials.at(0).denial.port == 0);
}

TEST_CASE("What is written is bounded, valid UTF-8, and quotes no credential") {
  RunFile run = Sample();
  run.agent_text = std::string(100000, 'x') + "\xff";
  run.record.outcome.reason = "a\xff ghp_" + std::string(36, 'a');
  const RunFile back = ParseRun(RenderRun(run)).value();
  CHECK(back.agent_text.size() <= size_t{64} << 10);
  CHECK(back.record.outcome.reason == "a\ufffd [redacted:github-token]");
}

TEST_CASE("Every text of a report can be edited, and nothing else changes") {
  RunFile sample = Sample();
  ReportInput input;
  input.record = sample.record;
  input.agent_text = sample.agent_text;
  input.agent_tail = sample.agent_tail;
  input.files.resize(1);
  input.files[0].path = "path-1";
  input.files[0].old_path = "path-0";
  size_t seen = 0;
  auto edit = [&](std::string_view text) {
    ++seen;
    return text == "N" || text == "bye" || text == "path-1" ? "edited" : std::string(text);
  };
  EditTexts(edit, &input);
  CHECK(seen > 40);
  CHECK(input.agent_text == "edited");
  CHECK(input.files[0].path == "edited");
  CHECK(input.files[0].old_path == "path-0");
  CHECK(input.record.denials[0].denial.operations[0].operation_name == "edited");
  sample.agent_text = "edited";
  sample.record.denials[0].denial.operations[0].operation_name = "edited";
  CHECK(RenderRun({input.record, input.agent_text, input.agent_tail}) == RenderRun(sample));
}

TEST_CASE("Changed files are read back as they were") {
  const std::vector<ChangedFile> files = {
      {"b", "a", FileState::kRenamed, "100644", "100755", false, 1, 2, 3},
      {"c", "", FileState::kDeleted, "120000", "", true, 0, 0, 0}};
  const std::string json = RenderChanges({2, 1, 2, 10, false, true}, files);
  const std::vector<ChangedFile> back = ParseChanges(json).value();
  REQUIRE(back.size() == 2);
  CHECK(back[0].old_path == "a");
  CHECK(back[0].state == FileState::kRenamed);
  CHECK(back[0].removed_lines == 2);
  CHECK(back[1].binary);
  CHECK_FALSE(ParseChanges(Replace(json, "\"renamed\"", "\"moved\"")).ok());
}

TEST_CASE("What an agent makes long is cut where it could not be read back") {
  ChangedFile file;
  file.path = std::string(4000, '\1');  // Six characters each in JSON.
  std::vector<ChangedFile> files(100, file);
  CHECK(ParseChanges(RenderChanges({}, files)).value().size() == 100);
  files.resize(2000, file);
  const std::vector<ChangedFile> back = ParseChanges(RenderChanges({}, files)).value();
  CHECK(back.size() > 300);
  CHECK(back.size() < 400);
  RunFile run = Sample();
  Finding finding;
  finding.path = file.path;
  run.record.findings.assign(2000, finding);
  run.agent_tail.assign(2000, file.path);
  const std::string json = RenderRun(run);
  CHECK(json.size() < size_t{9} << 20);
  CHECK(ParseRun(json).ok());
}

}  // namespace
}  // namespace report
