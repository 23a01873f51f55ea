// SPDX-License-Identifier: Apache-2.0
#include "codec/data/protobuf.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

constexpr std::string_view kWords[] = {"", "one", "two"};
constexpr MessageField kInnerFields[] = {{1, "text"}};
constexpr MessageShape kInner{kInnerFields};
constexpr MessageField kFields[] = {
    {1, "text"},
    {2, "flag", FieldKind::kBool},
    {3, "number", FieldKind::kInteger},
    {4, "real", FieldKind::kDouble},
    {5, "bytes", FieldKind::kBytes},
    {6, "word", FieldKind::kWord, FieldCount::kOne, nullptr, kWords},
    {7, "inner", FieldKind::kMessage, FieldCount::kOne, &kInner},
    {8, "numbers", FieldKind::kInteger, FieldCount::kList},
    {9, "inners", FieldKind::kMessage, FieldCount::kList, &kInner},
    {10, "map", FieldKind::kText, FieldCount::kMap},
    {111, "late", FieldKind::kMessage, FieldCount::kMap, &kInner},
};
constexpr MessageShape kShape{kFields};

Json Parsed(const char* text) { return ParseJson(text).value(); }

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

TEST_CASE("every kind of field comes back as it was written") {
  const Json json = Parsed(
      R"({"text":"é","flag":true,"number":-2,"real":0.5,"word":"two","inner":{"text":""},
          "numbers":[1,300],"inners":[{"text":"a"},{}],"map":{"k":"v","l":""},
          "late":{"m":{"text":"n"}}})");
  const std::string bytes = WriteMessage(json, kShape).value();
  CHECK(RenderJsonLine(ReadMessage(bytes, kShape).value()) == RenderJsonLine(json));
}

TEST_CASE("messages have the bytes of the format's own document") {
  CHECK(WriteMessage(Parsed(R"({"number":150})"), kShape).value() == Bytes({0x18, 0x96, 0x01}));
  CHECK(WriteMessage(Parsed(R"({"word":"one","flag":false})"), kShape).value() ==
        Bytes({0x30, 0x01, 0x10, 0x00}));
  CHECK(WriteMessage(Parsed("{}"), kShape).value().empty());
}

TEST_CASE("numbers of a list come packed or one by one") {
  for (const std::string& bytes :
       {Bytes({0x42, 0x03, 0x01, 0xac, 0x02}), Bytes({0x40, 0x01, 0x40, 0xac, 0x02})}) {
    CHECK(RenderJsonLine(ReadMessage(bytes, kShape).value()) == R"({"numbers":[1,300]})");
  }
}

TEST_CASE(
    "what the table does not have is skipped in what is read, and refused in what is written") {
  // Field 15, a varint and a text; a number of an enum without a word stays a number.
  const std::string bytes = Bytes({0x78, 0x05, 0x7a, 0x01, 'x', 0x30, 0x07});
  CHECK(RenderJsonLine(ReadMessage(bytes, kShape).value()) == R"({"word":7})");
  for (const char* text :
       {R"({"other":1})", R"({"text":1})", R"({"flag":"true"})", R"({"number":0.5})",
        R"({"word":"three"})", R"({"word":""})", R"({"inner":[]})", R"({"numbers":1})",
        R"({"map":[]})", R"({"inner":{"other":1}})", "[]"}) {
    CAPTURE(text);
    Result<std::string> bytes_of = WriteMessage(Parsed(text), kShape);
    REQUIRE_FALSE(bytes_of.ok());
    CHECK(bytes_of.error().code == Code::kInvalid);
  }
}

TEST_CASE("what is no message is refused") {
  for (const std::string& bytes :
       {Bytes({0x0a}), Bytes({0x0a, 0x05, 'a'}), Bytes({0x18, 0xff}), Bytes({0x0f}),
        Bytes({0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})}) {
    Result<Json> json = ReadMessage(bytes, kShape);
    REQUIRE_FALSE(json.ok());
    CHECK(json.error().code == Code::kInvalid);
  }
  // A field with another wire type than the table's.
  CHECK_FALSE(ReadMessage(Bytes({0x12, 0x01, 'x'}), kShape).ok());
}

}  // namespace
}  // namespace codec
