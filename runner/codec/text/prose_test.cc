// SPDX-License-Identifier: Apache-2.0
#include "codec/text/prose.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

std::string Render(std::string_view text) { return MarkdownProse(text, 10000); }

TEST_CASE("Prose keeps bold, code, lists, quotations and fenced code") {
  CHECK(Render("One **defect** in `add()`.\n") == "One **defect** in `add()`&#46;\n");
  CHECK(Render("# Review\nText\n") == "**Review**\n\nText\n");
  CHECK(Render("Found:\n- one\n- two\n  - below\n\nEnd") ==
        "Found:\n\n- one\n- two\n   - below\n\nEnd\n");
  CHECK(Render("1. one\n2) two") == "1. one\n2. two\n");
  CHECK(Render("> said\nmy answer") == "> said\n\nmy answer\n");
  CHECK(Render("See:\n```js\nlet a = `x`;\n```\ndone") ==
        "See:\n\n```\nlet a = `x`;\n```\n\ndone\n");
  CHECK(Render("a\r\n\r\n\r\n\r\nb\r\n") == "a\n\nb\n");
}

TEST_CASE("Prose shows everything else as the text that it is") {
  CHECK(Render("[here](https://x.example)") ==
        "&#91;here&#93;&#40;https:&#8203;//x.example&#41;\n");
  CHECK(Render("<img src=x> @octocat #12") ==
        "&#60;img src=x&#62; &#64;&#8203;octocat &#35;&#8203;12\n");
  CHECK(Render("![a](b)").find("![") == std::string::npos);
  CHECK(Render("/approve\n- /close\n") == "&#47;approve\n\n- &#47;close\n");
  CHECK(Render("    /merge") == "&#47;merge\n");
  CHECK(Render("<!-- agentic-ci:x -->").find("<!--") == std::string::npos);
  CHECK(Render("a | b\n--- | ---").find('|') == std::string::npos);
  CHECK(Render("title\n===") == "title\n&#61;==\n");
  CHECK(Render("---").find("---") == std::string::npos);
  CHECK(Render("> [!NOTE]\n> x") == "> &#91;&#33;&#8203;NOTE&#93;\n> x\n");
  // Bold text is neutral, too, and so is a heading.
  CHECK(Render("**@octocat**") == "**&#64;&#8203;octocat**\n");
  CHECK(Render("## a **b** <x>") == "**a b &#60;x&#62;**\n");
}

TEST_CASE("Prose closes what is left open, and leaves single marks alone") {
  CHECK(Render("```\n/approve\ncode") == "```\n /approve\ncode\n```\n");
  CHECK(Render("a ` b") == "a &#96; b\n");
  CHECK(Render("a ** b") == "a &#42;&#42; b\n");
  CHECK(Render("**a` b**`") == "&#42;&#42;a&#96; b&#42;&#42;&#96;\n");
  CHECK(Render("````\n```\ninner\n```\n````") == "````\n```\ninner\n```\n````\n");
  CHECK(Render(" \n\t\n").empty());
  CHECK(Render("").empty());
}

TEST_CASE("Code spans that follow each other do not become one") {
  CHECK(MarkdownSentence("``<i>[x](y) `b```c`", 200) == "``<i>[x](y) `b``&#8203;`c`");
  CHECK(MarkdownSentence("`a` `b` is **c**", 200) == "`a` `b` is **c**");
}

TEST_CASE("Prose is cut at a line's end, and says so") {
  CHECK(MarkdownProse("one\ntwo\nthree", 9) == "one\ntwo\n\n(The text is cut here.)\n");
  CHECK(MarkdownProse("```\na\nb\n", 6) == "```\na\n```\n\n(The text is cut here.)\n");
}

}  // namespace
}  // namespace codec
