// SPDX-License-Identifier: Apache-2.0
#include "eval/grade/python_value.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace eval {
namespace {

codec::Json Parse(const std::string& json) { return codec::ParseJson(json).value(); }

}  // namespace

TEST_CASE("A value's text is what midojo looks into") {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "None"},
      {"true", "True"},
      {"12", "12"},
      {"1.0", "1.0"},
      {"1e3", "1000.0"},
      {"0.1", "0.1"},
      {"1e16", "1e+16"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"0.00001", "1e-05"},
      {"\"a'b\"", "a'b"},
      {R"(["a'b", "c\"'d", "x\n\u0001\u200b", "é"])", R"(["a'b", 'c"\'d', 'x\n\x01\u200b', 'é'])"},
      {R"({"owner": "Ann", "frozen": false, "bal": 10.0})", "owner='Ann' frozen=False bal=10.0"},
      {R"([{"n": 3}])", "[Record(n=3)]"},
      {R"({"A": {"n": 3}, "B": {"n": null}})", "{'A': Record(n=3), 'B': Record(n=None)}"},
      {"{}", "{}"},
      {"[]", "[]"},
  };
  for (const auto& [json, text] : cases) {
    CAPTURE(json);
    CHECK(PythonText(Parse(json)) == text);
  }
}

TEST_CASE("Values are equal as Python compares them") {
  const auto equal = [](const char* a, const char* b) { return PythonEqual(Parse(a), Parse(b)); };
  CHECK(equal("1", "1.0"));
  CHECK(equal("1", "true"));
  CHECK(equal("[1, 0]", "[true, false]"));
  CHECK(equal(R"({"a": 1, "b": [2]})", R"({"b": [2.0], "a": 1})"));
  CHECK_FALSE(equal(R"({"a": 1})", R"({"a": 1, "b": 2})"));
  CHECK_FALSE(equal("1", "\"1\""));
  CHECK_FALSE(equal("0", "null"));
  CHECK_FALSE(equal("[1, 2]", "[2, 1]"));
  CHECK_FALSE(equal("9007199254740993", "9007199254740992"));
}

}  // namespace eval
