// SPDX-License-Identifier: Apache-2.0
#include "post/line_follower.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "report/findings.h"

namespace post {
namespace {

constexpr char kBlob[] = "0123456789abcdef0123456789abcdef01234567";

std::vector<forge::DiffFile> Diff() {
  forge::DiffFile file;
  file.path = "a.c";
  file.blob = "fedcba98";
  file.lines =
      forge::ParseHunks("@@ -1,3 +1,4 @@\n one\n+two\n }\n three\n@@ -30 +40,2 @@\n x\n+}\n");
  return {file};
}

report::Finding Seen(int line, std::initializer_list<std::string_view> lines) {
  report::Finding finding;
  finding.line = line;
  finding.end_line = line + static_cast<int>(lines.size()) - 1;
  finding.blob = kBlob;
  finding.lines_sha256 = report::LinesDigest(std::vector<std::string_view>(lines));
  return finding;
}

// "2-3", or "lost".
std::string Told(const std::vector<forge::DiffFile>& diff, const report::Finding& finding,
                 const std::string& path = "a.c") {
  const HeadLines lines = LineFollower(diff).Find(finding, path);
  if (lines.lost) return "lost";
  return std::to_string(lines.line) + "-" + std::to_string(lines.end_line);
}

}  // namespace

TEST_CASE("Lines that were seen in another version of a file are where their text is") {
  CHECK(Told(Diff(), Seen(9, {"two"})) == "2-2");
  CHECK(Told(Diff(), Seen(2, {"two"})) == "2-2");
  CHECK(Told(Diff(), Seen(9, {"two", "}", "three"})) == "2-4");
  CHECK(Told(Diff(), Seen(9, {"gone"})) == "lost");
  // In two places, and over the end of what is shown together.
  CHECK(Told(Diff(), Seen(3, {"}"})) == "lost");
  CHECK(Told(Diff(), Seen(4, {"three", "x"})) == "lost");
  CHECK(Told(Diff(), Seen(9, {"x", "}"})) == "40-41");
}

TEST_CASE("Lines of the head itself, and of what the difference does not show, stay as they are") {
  auto diff = Diff();
  report::Finding same = Seen(3, {"}"});
  diff[0].blob = std::string(kBlob, 8);
  CHECK(Told(diff, same) == "3-3");
  diff[0].blob = "0123";  // Too short to be a name.
  CHECK(Told(diff, same) == "lost");
  CHECK(Told(Diff(), same, "b.c") == "3-3");
  same.lines_sha256.clear();
  CHECK(Told(Diff(), same) == "3-3");
  diff = Diff();
  diff[0].removed = true;
  CHECK(Told(diff, Seen(9, {"two"})) == "9-9");
}

TEST_CASE("Of many lines the first twenty are compared") {
  CHECK(report::LinesInDigest(5, 0) == 1);
  CHECK(report::LinesInDigest(5, 6) == 2);
  CHECK(report::LinesInDigest(5, 5000) == 20);
  CHECK(report::LinesInDigest(1, std::numeric_limits<int>::max()) == 20);
}

}  // namespace post
