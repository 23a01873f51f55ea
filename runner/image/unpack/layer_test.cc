// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "base/code_of.h"
#include "image/unpack/layer_path.h"
#include "image/unpack/layer_record.h"
#include "image/unpack/tar_number.h"
#include "image/unpack/tar_reader.h"
#include "image/unpack/unpack_message.h"

namespace image {
namespace {

using std::string_literals::operator""s;

TEST_CASE("a number of a tar header is octal, or base 256") {
  CHECK(ParseTarNumber("0000644\0"s) == 0644);
  CHECK(ParseTarNumber("  644 \0\0"s) == 0644);
  CHECK(ParseTarNumber("644\0garbage"s) == 0644);
  CHECK(ParseTarNumber("77777777777 ") == 077777777777);
  CHECK(ParseTarNumber("") == 0);
  CHECK(ParseTarNumber("\0\0\0"s) == 0);
  CHECK(ParseTarNumber("\x80\0\0\0\0\0\0\0\0\x01\0\0"s) == 65536);
  CHECK(ParseTarNumber("\xff\xff\xff\xff\xff\xff\xff\xfe") == -2);
  CHECK(ParseTarNumber("\x80\x7f\xff\xff\xff\xff\xff\xff\xff"s) == INT64_MAX);
  CHECK(ParseTarNumber("\xff\x80\0\0\0\0\0\0\0"s) == INT64_MIN);

  CHECK_FALSE(ParseTarNumber("\x80\x80\0\0\0\0\0\0\0"s));
  CHECK_FALSE(ParseTarNumber("\x80\x01\0\0\0\0\0\0\0\0"s));
  CHECK_FALSE(ParseTarNumber("648"));
  CHECK_FALSE(ParseTarNumber("-1"));
  CHECK_FALSE(ParseTarNumber("6 4"));
}

TEST_CASE("a time of a pax header may be negative and has nanoseconds") {
  auto is = [](const char* text, int64_t seconds, int64_t nanoseconds) {
    std::optional<TarTime> time = ParseTarTime(text);
    return time && time->seconds == seconds && time->nanoseconds == nanoseconds;
  };
  CHECK(is("12", 12, 0));
  CHECK(is("12.", 12, 0));
  CHECK(is("12.5", 12, 500'000'000));
  CHECK(is("12.1234567899", 12, 123'456'789));
  CHECK(is("-12.25", -13, 750'000'000));
  CHECK(is("-12", -12, 0));
  for (const char* text : {"", "-", ".5", "1e9", "1.x", "--1", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseTarTime(text));
  }
}

TEST_CASE("an entry's name is taken apart before it reaches the kernel") {
  auto parse = [](const std::string& path) {
    Result<LayerPath> parsed = ParseLayerPath(path);
    return parsed.ok() ? parsed.value().parent + "|" + parsed.value().leaf : "refused";
  };
  CHECK(parse("a/b/c") == "a/b|c");
  CHECK(parse("/a//./b/") == "a|b");
  CHECK(parse("a") == "|a");
  CHECK(parse("") == "|");
  CHECK(parse("./") == "|");
  CHECK(parse("...") == "|...");
  CHECK(parse("a/..b") == "a|..b");
  CHECK(parse("a/../b") == "refused");
  CHECK(parse("..") == "refused");
  CHECK(parse("a\0b"s) == "refused");
  CHECK(parse(std::string(255, 'n')) == "|" + std::string(255, 'n'));
  CHECK(parse(std::string(256, 'n')) == "refused");
  std::string deep;
  for (size_t i = 0; i < kLayerDepthMax; ++i) deep += "a/";
  CHECK(parse(deep) != "refused");
  CHECK(parse(deep + "a") == "refused");

  CHECK(ParseLinkTarget("../../a").value().parent == "../..");
  CHECK(CodeOf(ParseLinkTarget("a/..")) == Code::kInvalid);
  CHECK(CodeOf(ParseLinkTarget("/")) == Code::kInvalid);
}

TEST_CASE("a whiteout is told from a file by its name") {
  auto kind = [](const std::string& path) {
    Result<WhiteoutName> name = ParseWhiteout(ParseLayerPath(path).value());
    if (!name.ok()) return "refused"s;
    return std::to_string(static_cast<int>(name.value().kind)) + name.value().hidden;
  };
  CHECK(kind("a/b") == "0");
  CHECK(kind("a/.wh") == "0");
  CHECK(kind("a/x.wh.b") == "0");
  CHECK(kind("a/.wh.b") == "1b");
  CHECK(kind("a/.wh..b") == "1.b");
  CHECK(kind("a/.wh.....") == "1....");
  CHECK(kind("a/.wh..wh..opq") == "2");
  CHECK(kind("a/.wh..wh.aufs") == "3");
  CHECK(kind("a/.wh..wh.plnk/1.2") == "3");
  for (const char* path : {".wh.", ".wh..", "a/.wh...", ".wh.a/b"}) {
    CAPTURE(path);
    CHECK(kind(path) == "refused");
  }
}

TEST_CASE("a reader gets no further than what is there") {
  std::string_view rest;
  auto input = [&]() -> Result<std::string_view> { return std::exchange(rest, {}); };
  {
    TarReader reader(input);
    Result<std::optional<TarEntry>> entry = reader.Next();
    REQUIRE(entry.ok());
    CHECK_FALSE(entry.value());
    CHECK_FALSE(reader.Next().value());
  }
  rest = "short";
  CHECK_FALSE(TarReader(input).Next().ok());
  std::string zeros(1024, '\0');
  rest = zeros;
  CHECK_FALSE(TarReader(input).Next().value());
  Error broken{Code::kIo, "broken"};
  TarReader failing([&]() -> Result<std::string_view> { return broken; });
  CHECK(failing.Next().error().what == "broken");
}

TEST_CASE("a record is read as it was written, and nothing else is") {
  LayerRecord record{"boot-1", std::string(64, 'a'), 3, 4, true, {"one", "two\nlines"}};
  std::string text = RenderRecord(record);
  Result<LayerRecord> again = ParseRecord(text);
  REQUIRE(again.ok());
  CHECK(again.value().boot == "boot-1");
  CHECK(again.value().entries == 3);
  CHECK(again.value().bytes == 4);
  CHECK(again.value().hides_below);
  CHECK(again.value().warnings == std::vector<std::string>{"one", "two?lines"});
  for (size_t cut = 0; cut + 32 < text.size(); ++cut) {
    CAPTURE(cut);
    CHECK(CodeOf(ParseRecord(text.substr(0, cut))) == Code::kInvalid);
  }
  CHECK(CodeOf(ParseRecord(text + "bytes 5\n")) == Code::kInvalid);
  CHECK(CodeOf(ParseRecord(text + "unknown 5\n")) == Code::kInvalid);
}

TEST_CASE("reports of the unpacking process are read as strictly as a layer") {
  UnpackedLayer layer{"sha256:1", "2", 3, 4, true, false, {"w"}};
  Result<UnpackReport> report = ParseReport(RenderReport(layer));
  REQUIRE(report.ok());
  const UnpackedLayer* read = std::get_if<UnpackedLayer>(&report.value());
  REQUIRE(read != nullptr);
  CHECK(read->bytes == 4);
  CHECK(read->reached_below);
  CHECK(read->warnings == std::vector<std::string>{"w"});

  report = ParseReport(RenderReport(Error{Code::kInvalid, "why", "hint"}));
  REQUIRE(report.ok());
  CHECK(std::get<Error>(report.value()).what == "why");
  report = ParseReport(RenderReport(Error{Code::kInvalid, "a\x1b[2J\nb\xc2\x9b", ""}));
  REQUIRE(report.ok());
  CHECK(std::get<Error>(report.value()).what == "a?[2J?b??");
  report = ParseReport(RenderReport(LookBelow{"a/b"}));
  REQUIRE(report.ok());
  CHECK(std::get<LookBelow>(report.value()).path == "a/b");

  std::string whole = RenderReport(layer);
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(ParseReport(whole.substr(0, size)).ok());
  }
  CHECK_FALSE(ParseReport(whole + "x").ok());
  CHECK_FALSE(ParseReport("\x03" + whole.substr(1)).ok());
  CHECK_FALSE(ParseReport(RenderReport(LookBelow{"a/..\0"s})).ok());
  LowerEntry entry;
  entry.kind = LowerEntry::Kind::kSymlink;
  entry.link = "target";
  entry.mode = 0777;
  CHECK(ParseAnswer(RenderAnswer(entry)).value().link == "target");
  entry.kind = static_cast<LowerEntry::Kind>(9);
  CHECK_FALSE(ParseAnswer(RenderAnswer(entry)).ok());
}

}  // namespace
}  // namespace image
