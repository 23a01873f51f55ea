// SPDX-License-Identifier: Apache-2.0
#include "forge/diff_file.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace forge {
namespace {

TEST_CASE("Lines of a file's hunks have their numbers on both sides") {
  DiffFile file;
  file.lines = ParseHunks(
      "@@ -1,3 +1,4 @@ void f()\n a\n-b\n+B\n+C\n c\n@@ -20 +21,2 @@\n x\n+y\n"
      "\\ No newline at end of file");
  REQUIRE(file.lines.size() == 6);
  REQUIRE(file.Find(2) != nullptr);
  CHECK(file.Find(2)->text == "B");
  CHECK(file.Find(2)->old_number == 0);
  CHECK(file.Find(4)->text == "c");
  CHECK(file.Find(4)->old_number == 3);
  CHECK(file.Find(4)->hunk == 1);
  CHECK(file.Find(5) == nullptr);
  CHECK(file.Find(22)->text == "y");
  CHECK(file.Find(22)->hunk == 2);
}

TEST_CASE("What is not understood in hunks carries no comment") {
  CHECK(ParseHunks("").empty());
  CHECK(ParseHunks("+no head\n").empty());
  CHECK(ParseHunks("@@ -1 1 @@\n+x\n").empty());
  CHECK(ParseHunks("@@ -1 +99999999999 @@\n+x\n").empty());
  CHECK(ParseHunks("@@ -1, +1 @@\n+x\n").empty());
  CHECK(ParseHunks("@@ -1 +1 @@\n+x\n?y\n+z\n").size() == 1);
  // Numbers only rise: the lines can be searched.
  CHECK(ParseHunks("@@ -1 +50 @@\n+x\n@@ -1 +10 @@\n+y\n").size() == 1);
}

}  // namespace
TEST_CASE("A difference has all its files, those without lines, removed and renamed included") {
  const std::vector<DiffFile> files =
      ParseDiff(
          "diff --git a/a b.c b/a b.c\nindex 1..2 100644\n--- a/a b.c\t\n+++ b/a b.c\t\n@@ -1 +1,2 "
          "@@\n"
          " one\n+++ b/fake\n"
          "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 "
          "+0,0 "
          "@@\n"
          "-x\n"
          "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"
          "diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -7 +8 "
          "@@\n"
          "-y\n+z\n"
          "diff --git a/rules/p.yml b/away/p.yml\nsimilarity index 100%\nrename from rules/p.yml\n"
          "rename to away/p.yml\n"
          "diff --git \"a/\\303\\274.c\" \"b/\\303\\274.c\"\nnew file mode 100644\nindex 0..3\n"
          "--- /dev/null\n+++ \"b/\\303\\274.c\"\n@@ -0,0 +1 @@\n+x\n")
          .value();
  REQUIRE(files.size() == 6);
  CHECK(files[0].path == "a b.c");
  CHECK(files[0].blob == "2");
  REQUIRE(files[0].lines.size() == 2);
  CHECK(files[0].lines[1].text == "++ b/fake");
  CHECK(files[1].path == "gone");
  CHECK(files[1].removed);
  CHECK(files[1].lines.empty());
  CHECK(files[2].path == "logo.png");
  CHECK(files[2].lines.empty());
  CHECK(files[3].path == "new");
  CHECK(files[3].old_path == "old");
  CHECK(files[3].Find(8) != nullptr);
  CHECK(files[4].path == "away/p.yml");
  CHECK(files[4].old_path == "rules/p.yml");
  CHECK(files[4].lines.empty());
  CHECK(files[5].path == "\303\274.c");
  CHECK(files[5].Find(1) != nullptr);
  CHECK(std::ranges::count_if(files, &DiffFile::removed) == 1);
  CHECK(ParseDiff("").value().empty());
}

TEST_CASE("What is held of a difference is bounded: lines of a file go all or none, names fail") {
  auto file = [](const std::string& name, int lines) {
    std::string text = "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" +
                       name + "\n@@ -0,0 +1," + std::to_string(lines) + " @@\n";
    for (int line = 0; line < lines; ++line) text += "+\n";
    return text;
  };
  const std::string diff = file("small", 3) + file("large", 1000) + file("other", 3);
  DiffLimits limits;
  CHECK(ParseDiff(diff, limits).value()[1].lines.size() == 1000);
  limits.line_bytes_max = 100 * sizeof(DiffLine);
  const std::vector<DiffFile> files = ParseDiff(diff, limits).value();
  REQUIRE(files.size() == 3);
  CHECK(files[0].lines.size() == 3);
  CHECK(files[1].path == "large");
  CHECK(files[1].lines.empty());
  CHECK(files[2].lines.size() == 3);
  limits.name_bytes_max = 5 * sizeof(DiffFile);
  CHECK(ParseDiff(diff, limits).error().code == Code::kRefused);
  // Held as objects, these lines of one byte each would take 24 MB.
  CHECK(ParseDiff(file("short lines", 500'000)).value().at(0).lines.empty());
}

}  // namespace forge
