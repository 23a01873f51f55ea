// SPDX-License-Identifier: Apache-2.0
#include "forge/diff_file.h"

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
TEST_CASE("A difference's files are those whose lines can carry a comment") {
  std::vector<DiffFile> files = ParseDiff(
      "diff --git a/a b.c b/a b.c\nindex 1..2 100644\n--- a/a b.c\t\n+++ b/a b.c\t\n@@ -1 +1,2 @@\n"
      " one\n+++ b/fake\n"
      "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 "
      "@@\n"
      "-x\n"
      "diff --git a/logo.png b/logo.png\nBinary files a/logo.png and b/logo.png differ\n"
      "diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -7 +8 @@\n"
      "-y\n+z\n");
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "a b.c");
  REQUIRE(files[0].lines.size() == 2);
  CHECK(files[0].lines[1].text == "++ b/fake");
  CHECK(files[1].path == "new");
  CHECK(files[1].old_path == "old");
  CHECK(files[1].Find(8) != nullptr);
  CHECK(ParseDiff("").empty());
}

}  // namespace forge
