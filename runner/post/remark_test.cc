// SPDX-License-Identifier: Apache-2.0
#include "post/remark.h"

#include <catch2/catch.hpp>

namespace post {
namespace {

std::vector<forge::DiffFile> Diff() {
  forge::DiffFile file;
  file.path = file.old_path = "src/a.c";
  file.lines = forge::ParseHunks(
      "@@ -1,2 +1,5 @@\n one\n+two\n+three\n+four\n five\n@@ -30,1 +33,2 @@\n x\n+y\n");
  forge::DiffFile removed;
  removed.path = removed.old_path = "gone.c";
  removed.removed = true;
  return {file, removed};
}

report::Finding AgentFinding(const std::string& path, int line, int end_line) {
  report::Finding finding;
  finding.source = report::FindingSource::kAgent;
  finding.rule = "r";
  finding.message = "at " + path;
  finding.path = path;
  finding.line = line;
  finding.end_line = end_line;
  return finding;
}

// A change as git writes it: `lines` is the hunk.
std::string Patch(const std::string& path, const std::string& lines) {
  std::string id(40, 'a');
  return "diff --git a/" + path + " b/" + path + "\nindex " + id + ".." + std::string(40, 'b') +
         " 100644\n--- a/" + path + "\n+++ b/" + path + "\n" + lines;
}

TEST_CASE("A suggestion of the lines as they are is not offered") {
  report::PostedReport report;
  for (const char* text : {"two\nthree\n", "two\nthree", "two\n", "two\nthree\nfour\n",
                           "two\nThree\n", "", "two\nthree\n\n"}) {
    report.record.findings.push_back(AgentFinding("src/a.c", 2, 3));
    report.record.findings.back().suggestion = text;
  }
  report.record.findings.push_back(AgentFinding("src/a.c", 20, 20));  // Not shown.
  report.record.findings.back().suggestion = "two\n";
  std::string offered;
  for (const Remark& remark : RemarksOf(report, Diff())) {
    offered += remark.suggestion ? '+' : '-';
    CHECK(remark.withheld.empty());
  }
  CHECK(offered == "--++++++");
}

TEST_CASE("The agent's findings become remarks, those of gates do not") {
  report::PostedReport report;
  report.record.changes.prefix = "src/";
  report.record.findings = {AgentFinding("a.c", 2, 2), AgentFinding("a.c", 2, 2),
                            AgentFinding("", 0, 0)};
  report.record.findings.push_back(report.record.findings[0]);
  report.record.findings.back().source = report::FindingSource::kGate;
  std::vector<Remark> remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 3);
  CHECK(remarks[0].path == "src/a.c");
  CHECK(remarks[2].path.empty());
  // The line is not part of the fingerprint.
  const Fingerprint first = remarks[0].fingerprint;
  CHECK(first == remarks[1].fingerprint);
  CHECK(Fingerprint::Read(first.Text() + " -->") == first);
  CHECK(Fingerprint::Read("").Text().empty());
  report.record.findings[0].line = 3;
  report.record.findings[0].message = "worded otherwise";
  const Fingerprint reworded = RemarksOf(report, Diff())[0].fingerprint;
  CHECK(reworded.place == first.place);
  CHECK(reworded.message != first.message);
}

TEST_CASE("A change of the agent's on lines of the pull request is a suggestion") {
  report::PostedReport report;
  report.patch = Patch("src/a.c", "@@ -1,5 +1,5 @@\n one\n-two\n-three\n+2\n+3\n four\n five\n");
  std::vector<Remark> remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].line == 2);
  CHECK(remarks[0].end_line == 3);
  CHECK(remarks[0].suggestion == "2\n3\n");

  // A finding on these lines takes it.
  report.record.findings = {AgentFinding("src/a.c", 3, 3)};
  remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].message == "at src/a.c");
  CHECK(remarks[0].line == 2);
  CHECK(remarks[0].suggestion == "2\n3\n");

  // Not one that has its own.
  report.record.findings[0].suggestion = "mine";
  remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[0].suggestion == "mine\n");
}

TEST_CASE("An insertion replaces the line above it, or at the top the one below") {
  report::PostedReport report;
  report.patch = Patch("src/a.c", "@@ -1,5 +1,6 @@\n one\n two\n+new\n three\n four\n five\n");
  std::vector<Remark> remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].line == 2);
  CHECK(remarks[0].end_line == 2);
  CHECK(remarks[0].suggestion == "two\nnew\n");

  report.patch = Patch("src/a.c", "@@ -1,3 +1,4 @@\n+new\n one\n two\n three\n");
  remarks = RemarksOf(report, Diff());
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].line == 1);
  CHECK(remarks[0].suggestion == "new\none\n");
}

TEST_CASE("A change that the pull request does not show as it is gives no suggestion") {
  report::PostedReport report;
  const char* hunks[] = {
      "@@ -1,3 +1,3 @@\n one\n-other text\n+2\n three\n",            // Another version of the file.
      "@@ -10,3 +10,3 @@\n a\n-b\n+c\n d\n",                         // Outside the difference.
      "@@ -5,1 +5,1 @@\n-five\n+5\n\\ No newline at end of file\n",  // Not whole lines.
  };
  for (const char* hunk : hunks) {
    report.patch = Patch("src/a.c", hunk);
    CHECK(RemarksOf(report, Diff()).empty());
  }
  report.patch = Patch("elsewhere.c", "@@ -1,1 +1,1 @@\n-one\n+1\n");
  CHECK(RemarksOf(report, Diff()).empty());
  report.patch = Patch("src/a.c", "@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
  CHECK(RemarksOf(report, Diff()).size() == 1);  // The control.
  report.record.outcome.kind = report::OutcomeKind::kRefused;
  CHECK(RemarksOf(report, Diff()).empty());
}

TEST_CASE("A remark goes beside its lines, on its file, or into the summary") {
  report::PostedReport report;
  report.record.findings = {AgentFinding("src/a.c", 2, 4),   AgentFinding("src/a.c", 2, 33),
                            AgentFinding("src/a.c", 20, 20), AgentFinding("gone.c", 1, 1),
                            AgentFinding("other.c", 1, 1),   AgentFinding("", 0, 0)};
  for (report::Finding& finding : report.record.findings) finding.suggestion = "x\n";
  std::vector<Placed> placed = Place(RemarksOf(report, Diff()), Diff(), false);
  REQUIRE(placed.size() == 6);
  CHECK(placed[0].spot == Spot::kLines);
  CHECK(placed[0].remark.suggestion);
  CHECK(placed[1].spot == Spot::kLines);  // The last line is in another hunk.
  CHECK(placed[1].remark.end_line == 2);
  CHECK_FALSE(placed[1].remark.suggestion);
  const std::string text = RenderRemark(placed[1].remark, "suggestion", false).markdown;
  CHECK(text.find("** Lines 2 to 33: ") != std::string::npos);
  CHECK(text.ends_with("that is not offered: its lines are not all in the diff.\n"));
  CHECK(placed[2].spot == Spot::kFile);
  for (size_t i : {3, 4, 5}) CHECK(placed[i].spot == Spot::kSummary);
  for (const Placed& there : Place(RemarksOf(report, Diff()), Diff(), true)) {
    CHECK(there.spot == Spot::kSummary);
  }
}

TEST_CASE("What is worst is beside the lines when not all can be") {
  report::PostedReport report;
  for (int i = 0; i < 40; ++i) report.record.findings.push_back(AgentFinding("src/a.c", 2, 2));
  report.record.findings[39].severity = report::Severity::kError;
  std::vector<Placed> placed = Place(RemarksOf(report, Diff()), Diff(), false);
  REQUIRE(placed.size() == 40);
  CHECK(placed[0].remark.severity == report::Severity::kError);
  CHECK(placed[29].spot == Spot::kLines);
  CHECK(placed[30].spot == Spot::kSummary);
}

TEST_CASE("A suggestion is a block that cannot be left, byte for byte or not at all") {
  Remark remark;
  remark.message = "<b>@all</b>";
  remark.rule = "r";
  remark.suggestion = "```\nx\n\n";
  std::string text = RenderRemark(remark, "suggestion", false).markdown;
  CHECK(text.find("\n````suggestion\n```\nx\n\n````\n") != std::string::npos);
  CHECK(text.find("<b>") == std::string::npos);
  remark.suggestion = "";
  CHECK(RenderRemark(remark, "suggestion", false).markdown.ends_with("```suggestion\n```\n"));
  for (const char* hidden : {"a\xe2\x80\xae"
                             "b\n",
                             "a\x1b[0m\n", "\xff\n", "```\n/approve\n"}) {
    remark.suggestion = hidden;
    text = RenderRemark(remark, "suggestion", false).markdown;
    CHECK(text.find("suggestion\n") == std::string::npos);
    CHECK(text.find("\n/") == std::string::npos);
    CHECK(text.find("There is a change for it that is not offered: ") != std::string::npos);
  }
}

TEST_CASE("What stands elsewhere names its lines, and has nothing to click") {
  Remark remark;
  remark.rule = "r";
  remark.message = "m";
  remark.line = 3;
  remark.end_line = 5;
  remark.suggestion = "x\n";
  RemarkText rendered = RenderRemark(remark, "", true);
  CHECK_FALSE(rendered.suggests);
  CHECK(rendered.markdown == "**note** Lines 3 to 5: m (`r`)\n\n```\nx\n```\n");
  remark.end_line = 3;
  remark.suggestion = "x\r\n";
  rendered = RenderRemark(remark, "suggestion", true);
  CHECK_FALSE(rendered.suggests);
  CHECK(rendered.markdown.starts_with("**note** Line 3: m (`r`)\n\nThere is a change for it"));
}

}  // namespace
}  // namespace post
