// SPDX-License-Identifier: Apache-2.0
#include "codec/text/neutral.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "codec/text/utf8.h"

namespace codec {
namespace {

TEST_CASE("ValidUtf8 replaces each maximal part of what is not UTF-8") {
  CHECK(ValidUtf8("a\xc3\xa9z") == "a\xc3\xa9z");
  CHECK(ValidUtf8("a\xff\xfez") == "a\ufffd\ufffdz");
  CHECK(ValidUtf8("\xf0\x9f\x98") == "\ufffd");              // Cut emoji: one.
  CHECK(ValidUtf8("\xc0\xaf") == "\ufffd\ufffd");            // Overlong '/'.
  CHECK(ValidUtf8("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");  // A surrogate.
  CHECK(ValidUtf8("\xf4\x90\x80\x80") == "\ufffd\ufffd\ufffd\ufffd");
  CHECK(NextUtf8("\xf0\x9f\x98\x80").value == 0x1f600);
  CHECK(FindInvalidUtf8("ab\xc3\xa9\xff") == 4);
  CHECK(FindInvalidUtf8("ab\xc3\xa9") == std::string_view::npos);
}

TEST_CASE("CutUtf8 keeps its bound and never halves a character") {
  CHECK(CutUtf8("abc", 3) == "abc");
  CHECK(CutUtf8("abcdef", 5) == "ab\u2026");
  CHECK(CutUtf8("\u00e9\u00e9\u00e9", 5) == "\u00e9\u2026");
  CHECK(CutUtf8("\u00e9\u00e9\u00e9", 4) == "\u2026");  // The bound would cut the first one.
  CHECK(CutUtf8("\u00e9\u00e9", 1).empty());
}

TEST_CASE("NeutralLine takes workflow commands their meaning") {
  CHECK(NeutralLine("::add-mask::x") == ": :add-mask::x");
  CHECK(NeutralLine(" \t::set-env name=A::x") == " \t: :set-env name=A::x");
  CHECK(NeutralLine("a ##[error]x") == "a # #[error]x");
  CHECK(NeutralLine("###[group]x") == "## #[group]x");
  CHECK(NeutralLine("##vso[task.x]") == "# #vso[task.x]");
  CHECK(NeutralLine("std::string stays") == "std::string stays");
  CHECK(NeutralLine("::1 and ::1:443") == "::1 and ::1:443");
}

TEST_CASE("WithoutCommands changes what the log's reader would carry out, and nothing else") {
  using enum codec::LogCommands;
  for (const char* text : {"## Heading", "####", "a::b", "std::string", "::1", "##"}) {
    CHECK(WithoutCommands(text, kAll) == text);
  }
  CHECK(WithoutCommands("::notice::x ##[group]y", kNone) == "::notice::x ##[group]y");
  CHECK(WithoutCommands("::notice::x ##[group]y", kWorkflow) == ": :notice::x # #[group]y");
  CHECK(WithoutCommands("##vso[task.x] ##teamcity[y]", kWorkflow) == "##vso[task.x] ##teamcity[y]");
  CHECK(WithoutCommands("##vso[task.x] ##teamcity[y]", kAll) == "# #vso[task.x] # #teamcity[y]");
  for (const char* blank : {"", " \t", "\u0085", "\u00a0", "\u1680", "\u2000", "\u2003 ", "\u200a",
                            "\u2028", "\u2029", "\u202f", "\u205f", " \u3000\u00a0"}) {
    INFO(blank);
    CHECK(WithoutCommands(std::string(blank) + "::error::x", kWorkflow) ==
          std::string(blank) + ": :error::x");
  }
  CHECK(WithoutCommands("\u00e9::error::x", kAll) == "\u00e9::error::x");
  CHECK(WithoutCommands("\u00a0", kAll) == "\u00a0");
}

TEST_CASE("A command cannot be put together from what NeutralLine removes") {
  CHECK(NeutralLine(":\x1b[31m:add-mask::x") == ": :add-mask::x");
  CHECK(NeutralLine("#\x1b]0;t\a#[error]") == "# #[error]");
  CHECK(NeutralLine("x\n::add-mask::y") == "x ::add-mask::y");
  CHECK(NeutralLine("x\r::add-mask::y") == "x ::add-mask::y");
  CHECK(NeutralLine("\r\n::add-mask::y") == " : :add-mask::y");
}

TEST_CASE("NeutralLine drops ANSI sequences and shows every other control character") {
  CHECK(NeutralLine("\x1b[1;31mred\x1b[0m\x1b[2K\x1b(B") == "red");
  CHECK(NeutralLine("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(NeutralLine("\x1b]0;never ends") == "\\u{1b}]0;never ends");
  CHECK(NeutralLine("a\bb\x7f" + std::string(1, '\0')) == "a\\u{8}b\\u{7f}\\u{0}");
  CHECK(NeutralLine("\u009b31mx") == "\\u{9b}31mx");
  CHECK(NeutralLine("a\u202eb\u2066\u200b\u2028\ufeff") ==
        "a\\u{202e}b\\u{2066}\\u{200b}\\u{2028}\\u{feff}");
  CHECK(NeutralLine("x\U000e0041") == "x\\u{e0041}");
  CHECK(NeutralLine("\u05d0\U0001f468\u200d\U0001f469 ok") ==
        "\u05d0\U0001f468\u200d\U0001f469 ok");
}

TEST_CASE("What a reader cannot see is shown as an escape") {
  for (char32_t c : {0xadu,   0x34fu,  0x115fu,  0x1160u,  0x17b4u,  0x180eu, 0x200bu,
                     0x2028u, 0x2064u, 0x2800u,  0x3164u,  0xfeffu,  0xffa0u, 0xfff1u,
                     0xfffeu, 0xffffu, 0x1fffeu, 0x1bca0u, 0x1d173u, 0xe0041u}) {
    std::string bytes;
    if (c >= 0x10000) {
      bytes += static_cast<char>(0xf0 | c >> 18);
      bytes += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    } else if (c >= 0x800) {
      bytes += static_cast<char>(0xe0 | c >> 12);
    }
    bytes += static_cast<char>(c < 0x800 ? 0xc0 | c >> 6 : 0x80 | (c >> 6 & 0x3f));
    bytes += static_cast<char>(0x80 | (c & 0x3f));
    char escape[16];
    std::snprintf(escape, sizeof escape, "\\u{%x}", static_cast<unsigned>(c));
    CHECK(NeutralLine("timeout," + bytes + "]") == "timeout," + std::string(escape) + "]");
    CHECK(HtmlText("\u00e9" + bytes) == "\u00e9" + std::string(escape));
  }
}

TEST_CASE("A joiner or variation selector stays behind what it acts on, and only one") {
  for (const char* text : {"\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3",
                           "\u0645\u06cc\u200c\u062e", "\u1820\u180b\u1820"}) {
    CHECK(NeutralLine(text) == text);
  }
  CHECK(NeutralLine("a\ufe0fb\u200dc") == "a\\u{fe0f}b\\u{200d}c");
  CHECK(NeutralLine("\u2764\ufe0f\ufe01\ufe02") == "\u2764\ufe0f\\u{fe01}\\u{fe02}");
  CHECK(NeutralLine("\u00e9\u200d\u200d\u200d") == "\u00e9\u200d\\u{200d}\\u{200d}");
  CHECK(NeutralLine("\u200d") == "\\u{200d}");
}

TEST_CASE("EscapedLine keeps the value, in one line") {
  CHECK(EscapedLine("/x\nopens:\r\n\t\u3164") == "/x\\u{a}opens:\\u{d}\\u{a}\t\\u{3164}");
  CHECK(EscapedLine(std::string(5000, 'a')).size() == 5000);
}

TEST_CASE("NeutralLine keeps its bound, whatever it has to insert") {
  CHECK(NeutralLine(std::string(5000, '#'), 100).size() <= 100);
  CHECK(NeutralLine(std::string(5000, '\x01'), 100).size() <= 100);
  CHECK(NeutralLine(std::string(100, 'a'), 100) == std::string(100, 'a'));
}

TEST_CASE("MarkdownText leaves nothing that is markup") {
  CHECK(MarkdownText("plain words, 12 of them.") == "plain words, 12 of them.");
  CHECK(MarkdownText("a <b>&amp;") == "a &#60;b&#62;&#38;&#8203;amp;");
  CHECK(MarkdownText("![i](http://x)") == "&#33;&#8203;&#91;i&#93;&#40;http:&#8203;//x&#41;");
  CHECK(MarkdownText("a|b `c` *d* _e_") == "a&#124;b &#96;c&#96; &#42;d&#42; &#95;e&#95;");
  CHECK(MarkdownText("x\n\n# y") == "x  &#35; y");
}

TEST_CASE("MarkdownText leaves no mention, reference or link") {
  CHECK(MarkdownText("cc @octo-org/team") == "cc &#64;&#8203;octo-org/team");
  CHECK(MarkdownText("fixes #12, gh-34") == "fixes &#35;&#8203;12, gh-&#8203;34");
  CHECK(MarkdownText("see WWW.x.y") == "see WWW&#8203;.x.y");
  CHECK(MarkdownText("a !3 ~bug %1 $2") ==
        "a &#33;&#8203;3 &#126;&#8203;bug &#37;&#8203;1 &#36;&#8203;2");
}

TEST_CASE("MarkdownText cannot begin a list, a heading or a quick action") {
  CHECK(MarkdownText("- a") == "&#45; a");
  CHECK(MarkdownText("/close") == "&#47;close");
  CHECK(MarkdownText("1. a") == "&#49;. a");
  CHECK(MarkdownText("# a") == "&#35; a");
}

TEST_CASE("MarkdownCode is one span, also in a table") {
  CHECK(MarkdownCode("src/a.c") == "`src/a.c`");
  CHECK(MarkdownCode("a`b``c") == "```a`b``c```");
  CHECK(MarkdownCode("`") == "`` ` ``");
  CHECK(MarkdownCode("a|b\\|@x") == "`a\u2502b\\\u2502@x`");
  CHECK(MarkdownCode("a\n\nb") == "`a  b`");
  CHECK(MarkdownCode("") == "` `");
}

TEST_CASE("MarkdownFence is longer than any fence inside") {
  CHECK(MarkdownFence("x", "", 100) == "```\nx\n```\n");
  CHECK(MarkdownFence("```\n</details>\n````\n@x\n\n", "text", 100) ==
        "`````text\n```\n</details>\n````\n@x\n`````\n");
  CHECK(MarkdownFence("a\r\nb\rc", "", 100) == "```\na\nb\nc\n```\n");
  CHECK(MarkdownFence("", "", 100) == "```\n```\n");
}

TEST_CASE("No line in a fence begins like a quick action, whatever fence is inside") {
  // GitLab's `^```.+?\n```$` does not see a fence of four backticks.
  CHECK(MarkdownFence("a\n```\n/approve\n```\n/merge x\r/close", "text", 100) ==
        "````text\na\n```\n /approve\n```\n /merge x\n /close\n````\n");
  CHECK(MarkdownFence("/usr/bin", "", 100) == "```\n /usr/bin\n```\n");
  CHECK(MarkdownFence("// a\n/* b\n/\n / c\n /d\n+/e", "", 100) ==
        "```\n// a\n/* b\n/\n / c\n /d\n+/e\n```\n");
  CHECK_FALSE(MarkdownVerbatim("x\n/approve\n", "suggestion", 100));
  CHECK_FALSE(MarkdownVerbatim("/approve", "suggestion", 100));
  CHECK(MarkdownVerbatim("// a\n /approve\n/* b */\n", "suggestion", 100) ==
        "```suggestion\n// a\n /approve\n/* b */\n```\n");
}

TEST_CASE("HtmlText escapes for text and for attribute values") {
  CHECK(HtmlText("<a href=\"x\" b='y'>&`") ==
        "&#60;a href=&#34;x&#34; b=&#39;y&#39;&#62;&#38;&#96;");
  CHECK(HtmlText("a\n\tb\u202e") == "a\n\tb\\u{202e}");
}

std::string Repeat(char c, size_t count) { return std::string(count, c); }

TEST_CASE("RedactTokens finds a credential wherever it stands") {
  for (const std::string& token :
       {"ghp_" + Repeat('a', 36), "gho_" + Repeat('B', 36), "ghu_" + Repeat('1', 36),
        "ghs_" + Repeat('a', 36), "ghr_" + Repeat('a', 36), "github_pat_" + Repeat('a', 82),
        "sk-ant-api03-" + Repeat('x', 40), "AKIA" + Repeat('Z', 16), "xoxb-" + Repeat('1', 24),
        "glpat-" + Repeat('a', 20), "sk-" + Repeat('a', 48), "AIza" + Repeat('a', 35),
        "npm_" + Repeat('a', 36),
        "eyJ" + Repeat('a', 20) + ".eyJ" + Repeat('b', 20) + "." + Repeat('c', 43)}) {
    CAPTURE(token);
    for (const char* before : {"", "```\n", "https://x/?t=", "\"\\n", "\x1b[31m", "KEY="}) {
      const std::string out = RedactTokens(before + token + "\" rest");
      CHECK(out.find(token) == std::string::npos);
      CHECK(out.find(std::string(before) + "[redacted:") == 0);
      CHECK(out.find("]\" rest") != std::string::npos);
    }
  }
}

TEST_CASE("RedactTokens leaves near misses alone") {
  for (const std::string& text :
       {"ghp_" + Repeat('a', 35), std::string("ghp_short"), "ghx_" + Repeat('a', 36),
        "AKIA" + Repeat('Z', 15), "AKIA" + Repeat('Z', 17), "XAKIA" + Repeat('Z', 16),
        std::string("sk-ant-"), std::string("xoxb-1"), "eyJ" + Repeat('a', 20) + ".x",
        std::string("git commit -m github_pat_"), std::string("")}) {
    CAPTURE(text);
    CHECK(RedactTokens(text) == text);
  }
}

}  // namespace
}  // namespace codec
