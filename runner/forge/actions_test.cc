// SPDX-License-Identifier: Apache-2.0
#include "forge/actions.h"

#include <catch2/catch.hpp>

namespace forge {
namespace {

Annotation Make(Level level, std::string message, std::string file = "", int line = 0,
                std::string title = "") {
  return {level, std::move(title), std::move(message), std::move(file), line};
}

TEST_CASE("RenderAnnotations writes the runner's commands, errors first") {
  CHECK(RenderAnnotations({Make(Level::kNotice, "n"), Make(Level::kWarning, "w", "a.cc"),
                           Make(Level::kError, "e", "b.cc", 3, "T")}) ==
        "::error file=b.cc,line=3,title=T::e\n::warning file=a.cc::w\n::notice::n\n");
}

TEST_CASE("RenderAnnotations lets no text end its command or begin another") {
  CHECK(RenderAnnotations({Make(Level::kError, "100%\r\n::set-output name=x::y\x1b[0m",
                                "a,line=9:b%.cc", 1, "x::y,z")}) ==
        "::error file=a%2Cline=9%3Ab%25.cc,line=1,title=x%3A%3Ay%2Cz::"
        "100%25%0D%0A::set-output name=x::y[0m\n");
}

TEST_CASE("RenderAnnotations shows ten of a level at most and says how many more there are") {
  auto lines = [](size_t count) {
    std::vector<Annotation> annotations(count, Make(Level::kWarning, "w"));
    std::string text = RenderAnnotations(annotations);
    size_t found = 0;
    for (char c : text) found += c == '\n' ? 1 : 0;
    return std::pair(found, text);
  };
  CHECK(lines(10).first == 10);
  CHECK(lines(10).second.find("more") == std::string::npos);
  CHECK(lines(51).first == 10);
  CHECK(lines(51).second.find("::warning::42 more at this level are in the report\n") !=
        std::string::npos);
}

TEST_CASE("RenderAnnotations leaves out the line when there is no file") {
  CHECK(RenderAnnotations({Make(Level::kNotice, "n", "", 7)}) == "::notice::n\n");
}

TEST_CASE("RenderMask masks every line of a secret, and no line that is in every log") {
  CHECK(RenderMask("hush") == "::add-mask::hush\n");
  CHECK(RenderMask("abc") == "::add-mask::abc\n");
  CHECK(RenderMask("50%") == "::add-mask::50%25\n");
  CHECK(RenderMask("-----BEGIN\r\nMIIB\n=\n\n") == "::add-mask::-----BEGIN\n::add-mask::MIIB\n");
  CHECK(RenderMask("").empty());
}

TEST_CASE("a group's title stays on one line") {
  CHECK(RenderGroupBegin("a\n::error::b") + RenderGroupEnd() ==
        "::group::a%0A::error::b\n::endgroup::\n");
}

TEST_CASE("commands resume on a line of their own") {
  CHECK(RenderStopCommands("w") + "no newline" + RenderResumeCommands("w") ==
        "::stop-commands::w\nno newline\n::w::\n");
}

TEST_CASE("RenderOutputs delimits values by the word") {
  Result<std::string> text = RenderOutputs(
      {{"outcome", "succeeded"}, {"tokens", ""}, {"comment-url", "a\nEOF\nb=c"}}, "w0");
  REQUIRE(text.ok());
  CHECK(text.value() ==
        "outcome<<w0\nsucceeded\nw0\ntokens<<w0\n\nw0\ncomment-url<<w0\na\nEOF\nb=c\nw0\n");
}

TEST_CASE("RenderOutputs refuses a name that would be something else, and a value with the word") {
  for (const char* name : {"", "a b", "a=b", "a<<b", "A", "a\nb"}) {
    CAPTURE(name);
    CHECK(RenderOutputs({{name, "x"}}, "w0").error().code == Code::kInvalid);
  }
  CHECK(RenderOutputs({{"a", "x w0 y"}}, "w0").error().code == Code::kBug);
  CHECK(RenderOutputs({{"a", "x"}}, "").error().code == Code::kBug);
}

TEST_CASE("RenderStepSummary fits beside what is there, cut at a line's end") {
  CHECK(RenderStepSummary("# hello\n", 0) == "# hello\n");
  std::string line(99, 'x');
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line + "\n";
  std::string cut = RenderStepSummary(text, 1000);
  CHECK(cut.size() + 1000 <= kStepSummaryBytesMax);
  CHECK(cut.size() + 1000 > kStepSummaryBytesMax - 200);
  CHECK(cut.find("x\n\n\n> Truncated here") != std::string::npos);
  CHECK(RenderStepSummary("# hello\n", kStepSummaryBytesMax).empty());
  CHECK(RenderStepSummary("# hello\n", kStepSummaryBytesMax + 5).empty());
}

}  // namespace
}  // namespace forge
