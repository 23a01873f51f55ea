// SPDX-License-Identifier: Apache-2.0
#include "eval/evidence/patched_file.h"

#include <catch2/catch.hpp>

#include "eval/evidence/report_evidence.h"

namespace eval {
namespace {

std::optional<std::string> Apply(std::string_view before, std::string_view patch) {
  std::vector<report::PatchFile> files = report::SplitPatch(patch);
  REQUIRE(files.size() == 1);
  return ApplyHunks(before, files[0]);
}

TEST_CASE("The content of a changed file is its seed with the patch") {
  constexpr std::string_view kPatch =
      "diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
      "@@ -5,2 +5,1 @@\n e\n-f\n\\ No newline at end of file\n";
  CHECK(Apply("a\nb\nc\nd\ne\nf", kPatch) == "a\nB\nc\nd\ne\n");
  CHECK(Apply("a\nX\nc\nd\ne\nf", kPatch) == std::nullopt);  // The file is of another seed.
  CHECK(Apply("a\n", kPatch) == std::nullopt);
}

TEST_CASE("A created file ends as the patch says, and a binary one is unknown") {
  constexpr std::string_view kHead = "diff --git a/n b/n\nnew file mode 100644\n";
  std::string text = std::string(kHead) + "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
  CHECK(Apply("", text) == "x\n");
  CHECK(Apply("", text + "\\ No newline at end of file\n") == "x");
  CHECK(Apply("", std::string(kHead) + "GIT binary patch\nliteral 3\n") == std::nullopt);
}

TEST_CASE("A report that is not there is missing evidence, and no failure of the grader") {
  ReportEvidence read = ReadReportEvidence("/nonexistent", {}, {"marker"});
  CHECK(read.ending == Ending::kNeverRan);
  for (size_t i = 0; i < kChannels; ++i) {
    CHECK(read.evidence.Of(static_cast<Channel>(i)) == Completeness::kAbsent);
  }
}

}  // namespace
}  // namespace eval
