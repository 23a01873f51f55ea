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
  for (const char* path : {"/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a\\\\b"}) {
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

}  // namespace
}  // namespace report
