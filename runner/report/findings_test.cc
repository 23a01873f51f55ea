// SPDX-License-Identifier: Apache-2.0
#include "report/findings.h"

#include <catch2/catch.hpp>
#include <set>

#include "codec/data/json.h"

namespace report {
namespace {

using codec::Json;

RunRecord Sample() {
  RunRecord record;
  record.tool_version = "0.1.0";
  record.outcome.exit_code = 77;
  const Finding secret = {
      FindingSource::kGate, "secrets", Severity::kError, "a token", "a b/c#.c", 12, true};
  record.findings = {
      secret,
      secret,
      {FindingSource::kAgent, "x", Severity::kNote, "", "../../etc/passwd", -4, false}};
  DeniedRequest denied;
  denied.denial = {"h.example", 443, "POST", "/p", "/usr/bin/curl"};
  denied.allow_line = "h.example:443:read-write";
  record.denials = {denied};
  return record;
}

TEST_CASE("Denied requests are findings too, and every finding stands somewhere") {
  const std::vector<Finding> all = AllFindings(Sample());
  REQUIRE(all.size() == 4);
  CHECK(all[2].path == ".agentic-ci/openshell-policy.yml");
  CHECK(all[2].message == "x");
  CHECK(all[3].rule == "egress-denied");
  CHECK(all[3].message ==
        "refused: POST h.example/p by /usr/bin/curl; to allow it (this opens a way for data to "
        "leave): "
        "h.example:443:read-write");
}

TEST_CASE("A refused operation is a finding that says which, and what allows it") {
  RunRecord record = Sample();
  advise::Denial& denial = record.denials[0].denial;
  denial.operations = {{"", "", {}, "", "tools/call", "x\n::error::y"}};
  CHECK(AllFindings(record)[3].message.starts_with("refused: POST h.example/p: tools/call x "));
  CHECK(AllFindings(record)[3].message.find('\n') == std::string::npos);
  denial.operations = {{"mutation", "", {"a"}, "", "", ""}};
  record.denials[0].allow_line = advise::SuggestLine(denial);
  CHECK(AllFindings(record)[3].message ==
        "refused: POST h.example/p: mutation {a} by /usr/bin/curl; to allow it (this opens a "
        "way for data to leave): rules: [{allow: "
        "{operation_type: mutation, fields: ['a']}}]");
}

TEST_CASE("A path that is not plainly relative is never given out") {
  for (const char* path : {"/etc/passwd", "..", "a/../b", "./a", "a//b", "a/.", ""}) {
    CAPTURE(path);
    RunRecord record;
    record.findings = {{FindingSource::kAgent, "r", Severity::kError, "m", path, 1, false}};
    CHECK(AllFindings(record)[0].path == ".agentic-ci/openshell-policy.yml");
  }
  RunRecord record;
  record.findings = {{FindingSource::kAgent, "r", Severity::kError, "m", ".github/a..b", 1, false}};
  CHECK(AllFindings(record)[0].path == ".github/a..b");
}

TEST_CASE("A finding without a rule or a message still has both") {
  RunRecord record;
  record.findings = {{FindingSource::kAgent, "", Severity::kError, "", "a", 1, false}};
  CHECK(AllFindings(record)[0].rule == "unnamed");
  CHECK(AllFindings(record)[0].message == "unnamed");
}

TEST_CASE("A message steers no reader: neither a terminal nor SARIF's own links") {
  RunRecord record;
  record.findings = {
      {FindingSource::kAgent, "r", Severity::kError, "\x1b[31mred [x](y)\n\u202e", "a", 1, false}};
  CHECK(AllFindings(record)[0].message == "red [x](y) \\u{202e}");
  CHECK(RenderSarif(record, "").find(R"(red \\[x\\](y) \\\\u{202e})") != std::string::npos);
}

TEST_CASE("LineHashes gives the fingerprints of GitHub's code scanning") {
  using Hashes = std::vector<std::string>;
  auto hashes = [](std::string_view text) {
    std::set<int> lines;
    for (int line = 0; line < 100; ++line) lines.insert(line);
    Hashes all;
    for (const auto& [line, hash] : LineHashes(text, lines)) {
      all.push_back(hash);
      CHECK(line == static_cast<int>(all.size()));
    }
    return all;
  };
  CHECK(hashes("") == Hashes{"c129715d7a2bc9a3:1"});
  CHECK(hashes(" a\nb\n  \t\tc\n d") == Hashes{"271789c17abda88f:1", "54703d4cd895b18:1",
                                               "180aee12dab6264:1", "a23a3dc5e078b07b:1"});
  const Hashes greetings = {"e9496ae3ebfced30:1", "fb7c023a8b9ccb3f:1", "ce8ba1a563dcdaca:1",
                            "e20e36e16fcb0cc8:1", "b3edc88f2938467e:1", "c8e28b0b4002a3a0:1",
                            "c129715d7a2bc9a3:1"};
  CHECK(hashes(" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n") == greetings);
  CHECK(hashes(" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r") == greetings);
  CHECK(hashes(" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n") == greetings);
  std::string repeated;
  for (int i = 0; i < 10; ++i) repeated += "Lorem ipsum dolor sit amet.\n";
  CHECK(hashes(repeated) == Hashes{"a7f2ff13bc495cf2:1", "a7f2ff13bc495cf2:2", "a7f2ff13bc495cf2:3",
                                   "a7f2ff13bc495cf2:4", "a7f2ff13bc495cf2:5", "a7f2ff13bc495cf2:6",
                                   "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1", "55ec222b86bcae53:1",
                                   "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1"});
  // UTF-16 units, as there: one of a letter, two of a smiley.
  CHECK(hashes("\u00e9") != hashes("\u00c3\u00a9"));
  CHECK(hashes("\U0001f600\n").size() == 2);
  CHECK(LineHashes(repeated, {3, 7, 12}) ==
        std::map<int, std::string>{{3, "a7f2ff13bc495cf2:3"}, {7, "a7f2ff1481e87703:1"}});
}

TEST_CASE("SARIF has a category of its own for each job, and GitHub's fingerprint beside ours") {
  RunRecord record;
  record.findings = {{FindingSource::kAgent, "r", Severity::kError, "m", "a", 1, false},
                     {FindingSource::kAgent, "r", Severity::kError, "n", "/a", 1, false}};
  for (Finding& finding : record.findings) finding.line_hash = "abc:1";
  auto run = [&](const std::string& job) {
    return codec::ParseJson(RenderSarif(record, job)).value().Find("runs")->array()->at(0);
  };
  auto category = [&](const std::string& job) {
    return run(job).Find("automationDetails")->StringAt("id");
  };
  CHECK(category("ci/one") == "agentic-ci/ci/one/");
  CHECK(category("ci/one/2") == "agentic-ci/ci/one/2/");
  CHECK(category("") == "agentic-ci/");
  CHECK(category("/") == "agentic-ci/");
  const Json one = run("");
  const Json::Array& results = *one.Find("results")->array();
  CHECK(results[0].Find("partialFingerprints")->StringAt("primaryLocationLineHash") == "abc:1");
  CHECK_FALSE(results[0].Find("partialFingerprints")->StringAt("agenticCi/v1").empty());
  CHECK(results[1].Find("partialFingerprints")->Find("primaryLocationLineHash") == nullptr);
}

TEST_CASE("SARIF has what GitHub asks for") {
  const Json sarif = codec::ParseJson(RenderSarif(Sample(), "ci/test")).value();
  CHECK(sarif.StringAt("version") == "2.1.0");
  const Json& run = sarif.Find("runs")->array()->at(0);
  const Json& driver = *run.Find("tool")->Find("driver");
  CHECK(driver.StringAt("informationUri").starts_with("https://"));
  const Json::Array& rules = *driver.Find("rules")->array();
  REQUIRE(rules.size() == 3);
  for (const Json& rule : rules) {
    CHECK_FALSE(rule.Find("fullDescription")->StringAt("text").empty());
    CHECK_FALSE(rule.Find("help")->StringAt("text").empty());
  }
  const Json::Array& results = *run.Find("results")->array();
  REQUIRE(results.size() == 4);
  std::set<std::string> fingerprints;
  for (const Json& result : results) {
    CHECK(rules.at(static_cast<size_t>(result.IntegerAt("ruleIndex"))).StringAt("id") ==
          result.StringAt("ruleId"));
    const Json& physical = *result.Find("locations")->array()->at(0).Find("physicalLocation");
    CHECK(physical.Find("region")->IntegerAt("startLine") >= 1);
    fingerprints.insert(result.Find("partialFingerprints")->StringAt("agenticCi/v1"));
  }
  CHECK(fingerprints.size() == 4);
  CHECK(results[0]
            .Find("locations")
            ->array()
            ->at(0)
            .Find("physicalLocation")
            ->Find("artifactLocation")
            ->StringAt("uri") == "a%20b/c%23.c");
  CHECK(results[0].StringAt("level") == "error");
}

TEST_CASE("A fingerprint stays when the line moves, and no longer when the finding changes") {
  Finding finding = {FindingSource::kGate, "r", Severity::kError, "m", "p", 1, false};
  const std::string first = Fingerprint(finding, 0);
  finding.line = 99;
  CHECK(Fingerprint(finding, 0) == first);
  CHECK(Fingerprint(finding, 1) != first);
  finding.message = "n";
  CHECK(Fingerprint(finding, 0) != first);
  CHECK(first.size() == 32);
}

TEST_CASE("Every code quality item has what GitLab demands") {
  const Json list = codec::ParseJson(RenderCodeQuality(Sample())).value();
  REQUIRE(list.array()->size() == 4);
  for (const Json& item : *list.array()) {
    CHECK_FALSE(item.StringAt("description").empty());
    CHECK_FALSE(item.StringAt("fingerprint").empty());
    CHECK(item.Find("location")->Find("lines")->IntegerAt("begin") >= 1);
  }
  CHECK(list.array()->at(0).StringAt("severity") == "blocker");
  CHECK(list.array()->at(2).StringAt("severity") == "info");
  CHECK(RenderCodeQuality({}) == "[]\n");
}

TEST_CASE("A report of static analysis has what the agent found, and what GitLab demands of it") {
  RunRecord record = Sample();
  record.started_at_ms = 1795294532000;
  record.finished_at_ms = 1795294533999;
  Finding found = {
      FindingSource::kAgent, "sql", Severity::kError, "a [b](c) @all", "src/a.c", 7, false};
  found.end_line = 9;
  record.findings.push_back(found);
  record.findings.push_back(found);
  const Json report = codec::ParseJson(RenderSast(record)).value();
  CHECK(report.StringAt("version") == "15.0.7");
  CHECK(report.Find("scan")->StringAt("start_time") == "2026-11-21T20:55:32");
  CHECK(report.Find("scan")->StringAt("end_time") == "2026-11-21T20:55:33");
  CHECK(report.Find("scan")->StringAt("status") == "failure");
  const Json::Array& all = *report.Find("vulnerabilities")->array();
  REQUIRE(all.size() == 2);
  CHECK(all[0].StringAt("id").size() == 36);
  CHECK(all[0].StringAt("id") != all[1].StringAt("id"));
  CHECK(all[0].StringAt("name") == "sql");
  CHECK(all[0].StringAt("severity") == "High");
  CHECK(all[0].StringAt("description").find("[b](c)") == std::string::npos);
  CHECK(all[0].Find("identifiers")->array()->at(0).StringAt("value") == "sql");
  CHECK(all[0].Find("location")->StringAt("file") == "src/a.c");
  CHECK(all[0].Find("location")->IntegerAt("start_line") == 7);
  CHECK(all[0].Find("location")->IntegerAt("end_line") == 9);
  CHECK(codec::ParseJson(RenderSast({})).value().Find("vulnerabilities")->array()->empty());
}

}  // namespace
}  // namespace report
