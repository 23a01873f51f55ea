// SPDX-License-Identifier: Apache-2.0
#include "report/agent_findings.h"

#include <catch2/catch.hpp>

namespace report {
namespace {

TEST_CASE("An agent's findings are read in the short form") {
  AgentFindings read = ParseAgentFindings(R"({"findings": [
      {"path": "a.c", "line": 3, "end_line": 5, "severity": "error", "rule": "leak",
       "message": "is never freed", "suggestion": "free(p);\n"},
      {"message": "about the whole"}]})");
  CHECK(read.mistakes.empty());
  REQUIRE(read.findings.size() == 2);
  CHECK(read.findings[0].source == FindingSource::kAgent);
  CHECK(read.findings[0].severity == Severity::kError);
  CHECK(read.findings[0].path == "a.c");
  CHECK(read.findings[0].line == 3);
  CHECK(read.findings[0].end_line == 5);
  CHECK(read.findings[0].suggestion == "free(p);\n");
  CHECK(read.findings[1].severity == Severity::kWarning);
  CHECK(read.findings[1].rule == "agent");
  CHECK_FALSE(read.findings[1].suggestion);
}

TEST_CASE("A mistake in a finding is named, and the other findings count") {
  auto mistake = [](const std::string& finding) {
    AgentFindings read = ParseAgentFindings(R"({"findings": [)" + finding +
                                            R"(, {"path": "good", "line": 1, "message": "m"}]})");
    REQUIRE(read.findings.size() == 1);
    CHECK(read.findings[0].path == "good");
    REQUIRE_FALSE(read.mistakes.empty());
    return read.mistakes[0];
  };
  CHECK(mistake(R"({"message": "m", "severity": "fatal"})") ==
        R"(findings[0].severity: "fatal" is not error, warning or note)");
  CHECK(mistake(R"({"path": "a", "line": 1})") == "findings[0]: no message");
  CHECK(mistake(R"({"message": "m", "lines": 1})") == R"(findings[0]: unknown member "lines")");
  CHECK(mistake(R"({"message": 7})") == "findings[0].message: not a string");
  CHECK(mistake(R"({"message": "m", "path": "a", "line": 0})") ==
        "findings[0].line: not a line number, which start at 1");
  CHECK(mistake(R"({"message": "m", "path": "a", "line": 5, "end_line": 4})") ==
        "findings[0].end_line: before the line");
  CHECK(mistake(R"({"message": "m", "line": 5})") == "findings[0]: a line without a path");
  CHECK(mistake(R"({"message": "m", "path": "a", "suggestion": "x"})") ==
        "findings[0]: a suggestion without a line");
  CHECK(mistake("7") == "findings[0]: not an object");
  for (const char* path : {"/etc/passwd", "../a", "a/../../b", "a//b", "a/./b", "a\\\\b"}) {
    CHECK(mistake(R"({"message": "m", "path": ")" + std::string(path) + R"("})")
              .starts_with("findings[0].path: "));
  }
}

TEST_CASE("What is not a findings file is one mistake") {
  for (const char* text : {"", "[]", "{}", "{\"findings\": 1}", "{\"findings\": [}", "null"}) {
    AgentFindings read = ParseAgentFindings(text);
    CHECK(read.findings.empty());
    CHECK(read.mistakes.size() == 1);
  }
}

TEST_CASE("Findings and mistakes are bounded") {
  std::string many;
  for (int i = 0; i < 1200; ++i) many += R"({"message": "m"},)";
  for (int i = 0; i < 50; ++i) many += R"({},)";
  AgentFindings read = ParseAgentFindings(R"({"findings": [)" + many + R"({"message": "m"}]})");
  CHECK(read.findings.size() == kAgentFindingsMax);
  CHECK(read.mistakes.size() == 20);
}

TEST_CASE("An agent's findings are read from SARIF") {
  AgentFindings read = ParseAgentFindings(R"({"version": "2.1.0", "runs": [{"results": [
      {"ruleId": "r1", "level": "error", "message": {"text": "bad"},
       "locations": [{"physicalLocation": {"artifactLocation": {"uri": "./src/a%20b.c"},
                                           "region": {"startLine": 2, "endLine": 3}}}],
       "fixes": [{"artifactChanges": [{"replacements": [
           {"deletedRegion": {"startLine": 2, "endLine": 3},
            "insertedContent": {"text": "good\n"}}]}]}]},
      {"ruleId": "r2", "message": {"text": "suppressed"}, "suppressions": [{"kind": "inSource"}]},
      {"ruleId": "r3", "message": {"text": "columns"},
       "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.c"},
                                           "region": {"startLine": 7, "startColumn": 3}}}],
       "fixes": [{"artifactChanges": [{"replacements": [
           {"deletedRegion": {"startLine": 7, "startColumn": 3, "endColumn": 9}}]}]}]}]}]})");
  CHECK(read.mistakes.empty());
  REQUIRE(read.findings.size() == 2);
  CHECK(read.findings[0].path == "src/a b.c");
  CHECK(read.findings[0].line == 2);
  CHECK(read.findings[0].end_line == 3);
  CHECK(read.findings[0].severity == Severity::kError);
  CHECK(read.findings[0].suggestion == "good\n");
  CHECK(read.findings[1].rule == "r3");
  CHECK_FALSE(read.findings[1].suggestion);
}

// Reads one result of a run that has `more` beside its results.
Finding OneResult(const std::string& result, const std::string& more = "") {
  const std::vector<std::string> tops = {"/work/site", "/scratch/checkout"};
  AgentFindings read =
      ParseAgentFindings(R"({"runs": [{)" + more + R"("results": [)" + result + "]}]}", tops);
  INFO(result);
  for (const std::string& mistake : read.mistakes) UNSCOPED_INFO(mistake);
  REQUIRE(read.mistakes.empty());
  REQUIRE(read.findings.size() == 1);
  return read.findings[0];
}

std::string PathAt(const std::string& artifact, const std::string& more = "") {
  return OneResult(R"({"message": {"text": "m"}, "locations": [{"physicalLocation":
      {"artifactLocation": {)" +
                       artifact + "}}}]}",
                   more)
      .path;
}

TEST_CASE("A SARIF location below the checkout is a path of it") {
  CHECK(PathAt(R"("uri": "file:///work/site/src/a%20b.c")") == "src/a b.c");
  CHECK(PathAt(R"("uri": "file://localhost/scratch/checkout/a.c")") == "a.c");
  CHECK(PathAt(R"("uri": "file:/work/site/src/../a.c")") == "a.c");
  CHECK(PathAt(R"("uri": "/work/site/a.c")") == "a.c");
  CHECK(PathAt(R"("uri": "./src//a.c")") == "src/a.c");
  CHECK(PathAt(R"("uri": "a.c", "uriBaseId": "%SRCROOT%")") == "a.c");
  const std::string bases = R"("originalUriBaseIds": {
      "%SRCROOT%": {"uri": "file:///container/src/"}, "TOP": {"uri": "file:///work/site"},
      "SUB": {"uri": "pkg/", "uriBaseId": "TOP"}, "LOOP": {"uri": "x/", "uriBaseId": "LOOP"}},
      "artifacts": [{"location": {"uri": "b.c", "uriBaseId": "SUB"}}], )";
  CHECK(PathAt(R"("uri": "a.c", "uriBaseId": "%SRCROOT%")", bases) == "a.c");
  CHECK(PathAt(R"("uri": "a.c", "uriBaseId": "SUB")", bases) == "pkg/a.c");
  CHECK(PathAt(R"("uri": "a.c", "uriBaseId": "UNKNOWN")", bases) == "a.c");
  CHECK(PathAt(R"("uri": "a.c", "uriBaseId": "LOOP")", bases).ends_with("x/a.c"));
  CHECK(PathAt(R"("index": 0)", bases) == "pkg/b.c");
}

TEST_CASE("A SARIF location that leads out of the checkout is a mistake") {
  const std::vector<std::string> tops = {"/work/site"};
  for (const char* uri : {"file:///work/site2/a.c", "file:///work/site/../a.c", "../a.c",
                          "https://example.com/a.c", "/etc/passwd", "a%00b"}) {
    AgentFindings read = ParseAgentFindings(
        R"({"runs": [{"results": [{"message": {"text": "m"}, "locations": [{"physicalLocation":
            {"artifactLocation": {"uri": ")" +
            std::string(uri) + R"("}}}]}]}]})",
        tops);
    INFO(uri);
    CHECK(read.findings.empty());
    CHECK(read.mistakes.size() == 1);
  }
}

TEST_CASE("A SARIF rule gives what its result leaves out") {
  const std::string rules = R"("tool": {"driver": {
      "globalMessageStrings": {"all": {"text": "for all"}}, "rules": [
      {"id": "r0", "shortDescription": {"text": "short"}, "help": {"text": "help"},
       "defaultConfiguration": {"level": "error"},
       "messageStrings": {"m": {"text": "{0} of {{1}} and {1}, {7}"}}},
      {"id": "r1", "defaultConfiguration": {"level": "note"}, "help": {"text": "help"}}]},
      "extensions": [{"rules": [{"id": "e0", "defaultConfiguration": {"level": "error"},
                                 "fullDescription": {"text": "full"}}]}]}, )";
  auto is = [&](const std::string& result, const char* rule, Severity severity,
                const char* message) {
    Finding finding = OneResult(result, rules);
    CHECK(finding.rule == rule);
    CHECK(finding.severity == severity);
    CHECK(finding.message == message);
  };
  is(R"({"ruleId": "r0"})", "r0", Severity::kError, "short");
  is(R"({"ruleIndex": 1})", "r1", Severity::kNote, "help");
  is(R"({"rule": {"id": "r1"}})", "r1", Severity::kNote, "help");
  is(R"({"ruleId": "r1/more/x"})", "r1/more/x", Severity::kNote, "help");
  is(R"({"rule": {"index": 0, "toolComponent": {"index": 0}}})", "e0", Severity::kError, "full");
  is(R"({"rule": {"id": "e0"}, "level": "warning"})", "e0", Severity::kWarning, "full");
  is(R"({"ruleId": "r0", "message": {"id": "m", "arguments": ["a", "b"]}})", "r0", Severity::kError,
     "a of {1} and b, {7}");
  is(R"({"ruleId": "r1", "message": {"id": "all"}})", "r1", Severity::kNote, "for all");
  is(R"({"ruleId": "r0", "kind": "review"})", "r0", Severity::kNote, "short");
  is(R"({"ruleId": "x", "message": {"text": "a {0} b"}})", "x", Severity::kWarning, "a {0} b");
  is(R"({"ruleId": "x", "message": {"text": "[one](1), \\[two\\](2), a[3], [x](y), [", "arguments": []}})",
     "x", Severity::kWarning, "one, [two](2), a[3], [x](y), [");
  is(R"({"ruleId": "x", "message": {"markdown": "**m**"}})", "x", Severity::kWarning, "**m**");
}

TEST_CASE("A SARIF result that is no problem is not a finding") {
  AgentFindings read = ParseAgentFindings(
      R"({"runs": [{"results": [
      {"kind": "pass", "message": {"text": "m"}}, {"kind": "notApplicable"},
      {"baselineState": "absent", "message": {"text": "m"}},
      {"kind": "fail", "message": {"text": "the control"}}]}]})");
  CHECK(read.mistakes.empty());
  REQUIRE(read.findings.size() == 1);
  CHECK(read.findings[0].message == "the control");
}

}  // namespace
}  // namespace report
