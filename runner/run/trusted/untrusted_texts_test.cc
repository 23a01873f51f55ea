// SPDX-License-Identifier: Apache-2.0
#include "run/trusted/untrusted_texts.h"

#include <catch2/catch.hpp>

namespace run {
namespace {

TEST_CASE("What people wrote in an event is untrusted, and has a name") {
  forge::EventText text;
  text.title = "a title";
  text.comment = "a comment";
  const auto texts = TextsOfEvent(text, false);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].name == "the title of the issue");
  CHECK(texts[1].name == "a comment of the issue");
  CHECK(texts[1].text == "a comment");
  CHECK(TextsOfEvent(text, true)[0].name == "the title of the pull request");
}

TEST_CASE("What a patch adds is untrusted, file by file, and nothing else of it") {
  const auto [texts, complete] = AddedTexts(
      "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,3 @@\n kept\n-gone\n+new\n+er\n"
      "diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+all\n");
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].name == "a.c of the pull request");
  CHECK(texts[0].text == "new\ner\n");
  CHECK(texts[1].text == "all\n");
  CHECK(complete);
  CHECK(AddedTexts("").texts.empty());
}

TEST_CASE("A patch's file is found under any name, and its lines whatever they look like") {
  const auto [texts, complete] = AddedTexts(
      "--- /dev/null\n+++ \"b/n\\303\\266te\"\n@@ -0,0 +1,3 @@\n+one\n+++ b/\n+@@ -0,0 +1 @@\n"
      "\\ No newline at end of file\n"
      "--- a/c\n+++ b/c\n@@ -1,2 +1 @@\n--- gone\n kept\n");
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].name == "n\\303\\266te of the pull request");
  CHECK(texts[0].text == "one\n++ b/\n@@ -0,0 +1 @@\n");
  CHECK(texts[1].name == "c of the pull request");
  CHECK(texts[1].text.empty());
  CHECK(complete);
  CHECK_FALSE(AddedTexts("diff --git a/p b/p\n(binary)\n").complete);
}

}  // namespace
}  // namespace run
