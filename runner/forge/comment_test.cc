// SPDX-License-Identifier: Apache-2.0
#include "forge/comment.h"

#include <catch2/catch.hpp>

#include "codec/text/utf8.h"

namespace forge {
namespace {

size_t Characters(const std::string& text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

std::string Repeat(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST_CASE(
    "RenderMarker encodes whatever could end the HTML comment, and different keys differently") {
  CHECK(RenderMarker("ci/agent-job") == "<!-- agentic-ci:ci/agent-job -->");
  CHECK(RenderMarker("a-->b") == "<!-- agentic-ci:a-%2D%3Eb -->");
  CHECK(RenderMarker("-a-") == "<!-- agentic-ci:%2Da%2D -->");
  CHECK(RenderMarker("a b\n") == "<!-- agentic-ci:a%20b%0A -->");
  CHECK(RenderMarker("a%20b") == "<!-- agentic-ci:a%2520b -->");
  CHECK(RenderMarker("\xc3\xa9") == "<!-- agentic-ci:%C3%A9 -->");
}

TEST_CASE("CarriesMarker wants the marker as the whole first line") {
  std::string marker = RenderMarker("k");
  CHECK(CarriesMarker(marker, marker));
  CHECK(CarriesMarker(marker + "\nbody", marker));
  CHECK(CarriesMarker(marker + "\r\nbody", marker));
  CHECK_FALSE(CarriesMarker(marker + " x", marker));
  CHECK_FALSE(CarriesMarker("> " + marker, marker));
  CHECK_FALSE(CarriesMarker("\n" + marker, marker));
  CHECK_FALSE(CarriesMarker(RenderMarker("k2") + "\n", marker));
  CHECK_FALSE(CarriesMarker("", marker));
}

TEST_CASE("RenderComment puts the marker on the first line, before the body") {
  CommentText comment = RenderComment("k", "# Report\n\nfine\n", "");
  CHECK(comment.text == "<!-- agentic-ci:k -->\n# Report\n\nfine\n");
  CHECK_FALSE(comment.cut);
}

TEST_CASE("RenderComment leaves no HTML comment in a body, however it is written") {
  for (std::string body : {"<!-- agentic-ci:k -->", "<<!--!-- agentic-ci:k -->", "<!<!----",
                           "a\r<!-- x", "<\x01!-- x", "<\0!-- x", "<\x7f!--"}) {
    CAPTURE(body);
    std::string text = RenderComment("k", body, "").text;
    CHECK(text.find("<!--", 1) == std::string::npos);
  }
  CHECK(RenderComment("k", "a <!-- b -->", "").text == "<!-- agentic-ci:k -->\na &lt;!-- b -->");
}

TEST_CASE("RenderComment takes bytes that are not UTF-8, control characters and CR out") {
  CHECK(RenderComment("k", std::string("a\xff\r\n\0\x1b[1mb\xc3", 11), "").text ==
        "<!-- agentic-ci:k -->\na\xef\xbf\xbd\n[1mb\xef\xbf\xbd");
}

TEST_CASE("RenderComment uses every character there is, counted as GitHub counts them") {
  size_t room = kCommentCharactersMax - Characters(RenderMarker("k") + "\n");
  for (std::string_view character : {"x", "\xc3\xa9", "\xf0\x9f\x8c\x88"}) {
    CAPTURE(character);
    CommentText whole = RenderComment("k", Repeat(character, room), "");
    CHECK_FALSE(whole.cut);
    CHECK(Characters(whole.text) == kCommentCharactersMax);
    CommentText cut = RenderComment("k", Repeat(character, room + 1), "");
    CHECK(cut.cut);
    CHECK(Characters(cut.text) <= kCommentCharactersMax);
    CHECK(codec::FindInvalidUtf8(cut.text) == std::string::npos);
  }
}

TEST_CASE("RenderComment cuts at a line's end, with a note above that says where the rest is") {
  std::string body = "```\n" + Repeat("0123456789\n", 10'000) + "```\n";
  CommentText comment = RenderComment("k", body, "the artifact of https://example.com/runs/7");
  REQUIRE(comment.cut);
  CHECK(Characters(comment.text) <= kCommentCharactersMax);
  CHECK(Characters(comment.text) > kCommentCharactersMax - 20);
  CHECK(comment.text.substr(comment.text.size() - 11) == "0123456789\n");
  CHECK(comment.text.find(
            "<!-- agentic-ci:k -->\n> [!NOTE]\n> This comment was shortened to fit. The full text "
            "is in the artifact of https://example.com/runs/7.\n\n```\n") == 0);
}

TEST_CASE("RenderComment keeps its bound and its note whatever the place says") {
  std::string body = Repeat("\xf0\x9f\x8c\x88\n", 70'000);
  std::string place = "<!--\n\n# x\n" + Repeat("\xff", 5'000);
  CommentText comment = RenderComment("k", body, place);
  CHECK(Characters(comment.text) <= kCommentCharactersMax);
  CHECK(comment.text.find("<!--", 1) == std::string::npos);
  CHECK(comment.text.find("\n# x") == std::string::npos);
}

TEST_CASE("RenderComment cuts a body that one replacement made too long") {
  size_t room = kCommentCharactersMax - Characters(RenderMarker("k") + "\n");
  CommentText comment = RenderComment("k", "<!--" + Repeat("x", room - 4), "");
  CHECK(comment.cut);
  CHECK(Characters(comment.text) <= kCommentCharactersMax);
}

}  // namespace
}  // namespace forge
