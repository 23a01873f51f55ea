// SPDX-License-Identifier: Apache-2.0
#include "codec/data/json.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

TEST_CASE("ParseJson gives every type back as itself") {
  Json json = ParseJson(R"({"a":[1,-2.5,true,null,"x"],"b":{"c":9223372036854775807}})").value();
  const Json::Array& array = *json.Find("a")->array();
  CHECK(array[0].integer() == 1);
  CHECK(array[0].number() == 1.0);
  CHECK(array[1].number() == -2.5);
  CHECK_FALSE(array[1].integer());
  CHECK(array[2].boolean() == true);
  CHECK(array[3].is_null());
  CHECK(*array[4].string() == "x");
  CHECK(json.Find("b")->IntegerAt("c") == INT64_MAX);
  CHECK(json.Find("zz") == nullptr);
}

TEST_CASE("A number beyond int64 is a double, one beyond double is refused") {
  CHECK_FALSE(ParseJson("18446744073709551615").value().integer());
  CHECK(ParseJson("18446744073709551615").value().number() == 18446744073709551615.0);
  CHECK_FALSE(ParseJson("1e999").ok());
}

TEST_CASE("ParseJson refuses what is not one JSON text") {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":1}x", "nul", "'a'", "\"\xff\"", "[1] [2]",
                           "// c\n1", "NaN", "\"\\ud800\"", "01", "\xef\xbb\xbf{}"}) {
    CAPTURE(text);
    Result<Json> json = ParseJson(text);
    REQUIRE_FALSE(json.ok());
    CHECK(json.error().code == Code::kInvalid);
  }
  CHECK_FALSE(ParseJson(std::string_view("{}\0{\"a\":1}", 10)).ok());
}

TEST_CASE("ParseJson refuses a duplicate name in an object, not in two") {
  CHECK_FALSE(ParseJson(R"({"a":1,"b":2,"a":3})").ok());
  CHECK(ParseJson(R"({"a":{"a":1}})").ok());
}

TEST_CASE("ParseJson keeps its bounds while it reads") {
  JsonBounds bounds{.bytes_max = 1000, .depth_max = 3, .values_max = 5};
  CHECK(ParseJson("[[[]]]", bounds).ok());
  CHECK(ParseJson("[[[[]]]]", bounds).error().what == "nested too deeply");
  CHECK(ParseJson("[1,2,3,4]", bounds).ok());
  CHECK(ParseJson("[1,2,3,4,5]", bounds).error().what == "too many values");
  CHECK_FALSE(ParseJson(std::string(1001, ' '), bounds).ok());
  CHECK_FALSE(ParseJson(std::string(100000, '['), JsonBounds{}).ok());
}

TEST_CASE("The wrong type is the fallback, never a failure") {
  Json json = ParseJson(R"({"s":1,"i":"x","b":0,"n":[]})").value();
  CHECK(json.StringAt("s").empty());
  CHECK(json.IntegerAt("i", 7) == 7);
  CHECK(json.BooleanAt("b", true));
  CHECK(Json(3).Find("x") == nullptr);
}

TEST_CASE("RenderJson escapes what a terminal or the log of a job carries out") {
  const std::string text =
      "##[add-mask]a ##vso[task] ### x ## \x1b[2J \x7f \u009b2J \u0080 \u00e9 #[";
  const std::string rendered = RenderJson(Json().Set("a", text));
  CHECK(rendered ==
        "{\n  \"a\": \"#\\u0023[add-mask]a #\\u0023vso[task] ### x ## \\u001b[2J \\u007f \\u009b2J "
        "\\u0080 \u00e9 #[\"\n}\n");
  CHECK(ParseJson(rendered).value().StringAt("a") == text);
}

TEST_CASE("RenderJson keeps the order of names and replaces invalid UTF-8") {
  Json json;
  json.Set("z", 1).Set("a", Json::FromStrings({"x\xffy"})).Set("n", Json()).Set("d", 0.5);
  CHECK(RenderJsonLine(json) == "{\"z\":1,\"a\":[\"x\xef\xbf\xbdy\"],\"n\":null,\"d\":0.5}");
  CHECK(RenderJson(Json().Set("a", true)) == "{\n  \"a\": true\n}\n");
  CHECK(RenderJsonLine(Json::EmptyObject()) == "{}");
  CHECK(RenderJsonLine(Json(1.0 / 0.0)) == "null");
}

TEST_CASE("What RenderJson writes, ParseJson reads") {
  std::string text = R"({"a":"\u0000\n\"\\","b":[{},[],-1,0.1]})";
  CHECK(RenderJsonLine(ParseJson(text).value()) == text);
}

}  // namespace
}  // namespace codec
