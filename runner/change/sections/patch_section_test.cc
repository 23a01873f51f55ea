// SPDX-License-Identifier: Apache-2.0
#include "change/sections/patch_section.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <utility>

#include "base/code_of.h"
#include "change/sections/binary_block.h"

namespace change {
namespace {

const std::string kIds = "index " + std::string(40, '1') + ".." + std::string(40, '2');

PatchSection One(const std::string& patch) {
  Result<std::vector<PatchSection>> sections = ReadSections(patch);
  REQUIRE(sections.ok());
  REQUIRE(sections.value().size() == 1);
  return std::move(sections).value()[0];
}

TEST_CASE("Quoted names are read as the bytes they stand for") {
  std::string patch =
      "diff --git \"a/t\\ta\\\\b\\303\\274\" \"b/t\\ta\\\\b\\303\\274\"\nnew file mode 100644\n";
  CHECK(One(patch).new_path == "t\ta\\b\xc3\xbc");
  CHECK(One("diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n").old_path == "a b");
}

TEST_CASE("Hunks replace exactly the lines they name") {
  std::string patch = "diff --git a/a b/a\n" + kIds +
                      " 100644\n--- a/a\n+++ b/a\n@@ -2,2 +2,1 @@ f()\n" +
                      " two\n-three\n@@ -5,0 +5,1 @@\n+six\n";
  PatchSection section = One(patch);
  CHECK(ApplySection(section, "one\ntwo\nthree\nfour\nfive\n").value() ==
        "one\ntwo\nfour\nfive\nsix\n");
  CHECK(CodeOf(ApplySection(section, "one\nTWO\nthree\nfour\nfive\n")) == Code::kInvalid);
  CHECK(CodeOf(ApplySection(section, "one\n")) == Code::kInvalid);
}

TEST_CASE("A missing newline at the end is part of the match") {
  std::string patch = "diff --git a/a b/a\n" + kIds +
                      " 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n" +
                      "\\ No newline at end of file\n+b\n";
  CHECK(ApplySection(One(patch), "a").value() == "b\n");
  CHECK(CodeOf(ApplySection(One(patch), "a\n")) == Code::kInvalid);
}

TEST_CASE("What git does not write is not read") {
  for (const std::string& patch : std::vector<std::string>{
           std::string("a\n"),
           std::string("diff --git a/a b/b\nold mode 100644\nnew mode 100755\n"),
           std::string("diff --git a/a b/a\nnew file mode 9\n"),
           std::string("diff --git a/a b/a\ncopy from x\ncopy to y\n"),
           std::string("diff --git a/a b/a\nnew file mode 100644\ndeleted file mode 100644\n"),
           "diff --git a/a b/a\n" + kIds + " 100644\n--- a/b\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n",
           "diff --git a/a b/a\n" + kIds + " 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n-a\n+b\n",
           "diff --git a/a b/a\n" + kIds + " 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n+c\n",
           "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n",
           "diff --git a/a b/a\nindex 1111111..2222222 100644\n--- a/a\n+++ b/a\n@@ -1 +1 "
           "@@\n-a\n+b\n",
           "diff --git a/a b/a\n" + kIds + " 100644\nGIT binary patch\nliteral 1\nIc\n"}) {
    CAPTURE(patch);
    CHECK(CodeOf(ReadSections(patch)) == Code::kInvalid);
  }
}

TEST_CASE("Unsound binary data is an error") {
  auto block = [&](const std::string& forward) {
    std::string patch = "diff --git a/a b/a\n" + kIds + " 100644\nGIT binary patch\n" + forward +
                        "\n\nliteral 0\nHcmV?d00001\n\n";
    Result<std::vector<PatchSection>> sections = ReadSections(patch);
    REQUIRE(sections.ok());
    return ApplySection(sections.value()[0], "old");
  };
  CHECK(block("literal 0\nHcmV?d00001").ok());
  CHECK(CodeOf(block("literal 5\nHcmV?d00001")) == Code::kInvalid);  // Shorter than it says.
  CHECK(CodeOf(block("literal 99999999999\nHcmV?d00001")) == Code::kInvalid);  // A claim of memory.
  CHECK(CodeOf(block("literal 0\nHcmV?d0000")) == Code::kInvalid);
  CHECK(CodeOf(block("literal 0\nH\"mV?d00001")) == Code::kInvalid);
  CHECK(CodeOf(block("delta 0\nHcmV?d00001")) == Code::kInvalid);
}

TEST_CASE("The decoded sizes of binary data are bounded together, before they are decoded") {
  const std::string head = "diff --git a/a b/a\n" + kIds + " 100644\nGIT binary patch\n";
  const std::string tail = "\n\nliteral 0\nHcmV?d00001\n\n";
  auto check = [&](const std::string& patch, int64_t bytes_max, Deadline deadline) {
    return CheckDecodedSize(ReadSections(patch).value(), bytes_max, deadline);
  };
  const std::string five = head + "literal 5\nMc-qTI&B@6J00t}q6#xJL" + tail;
  const std::string twelve = head + "delta 6\nNc-muTo4`DQ82|&K0Wbgn" + tail;  // "old" twice.
  CHECK(ApplySection(ReadSections(twelve).value()[0], "old").value() == "oldold");
  for (const auto& [patch, bytes] :
       {std::pair{five, 5}, {five + five, 10}, {twelve, 12}, {five + twelve, 17}}) {
    CHECK(check(patch, bytes, Deadline::Never()).ok());
    Status refused = check(patch, bytes - 1, Deadline::Never());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kRefused);
  }
  CHECK(
      check(head + "literal 9223372036854775807\nHcmV?d00001" + tail + five, 100, Deadline::Never())
          .error()
          .code == Code::kRefused);
  CHECK(check(head + "delta 0\nHcmV?d00001" + tail, 100, Deadline::Never()).error().code ==
        Code::kInvalid);
  CHECK(check(five, 5, Deadline::After(std::chrono::milliseconds(-1))).error().code ==
        Code::kTemporary);
}

}  // namespace
}  // namespace change
