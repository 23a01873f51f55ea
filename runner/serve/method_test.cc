// SPDX-License-Identifier: Apache-2.0
#include "serve/method.h"

#include <catch2/catch.hpp>

#include "serve/script.h"

namespace serve {
namespace {

const std::vector<Method>& All() {
  static const std::vector<Method> all =
      Methods({{"policy", Form::kOption}, {"env", Form::kOptions}, {"apply", Form::kFlag}});
  return all;
}

// The error of those params, and its hint.
std::pair<std::string, std::string> Check(const std::string& method, const std::string& params) {
  Result<codec::Json> json = codec::ParseJson(params);
  REQUIRE(json.ok());
  Result<const Method*> found = FindMethod(All(), method);
  REQUIRE(found.ok());
  Status fine = CheckParams(*found.value(), json.value());
  return fine.ok() ? std::pair<std::string, std::string>()
                   : std::pair(fine.error().what, fine.error().hint);
}

codec::Json Params(const std::string& text) {
  Result<codec::Json> json = codec::ParseJson(text);
  REQUIRE(json.ok());
  return json.value();
}

TEST_CASE("members are checked by name and form") {
  CHECK(
      Check("exec", R"({"sandbox":"a","command":["x"],"env":{"A":"b"},"window":1})").first.empty());
  CHECK(Check("exec", "{}").first == "exec: 'sandbox' is missing");
  CHECK(Check("exec", R"({"sandbox":1})").first == "exec: 'sandbox' is not a text");
  CHECK(Check("exec", R"({"sandbox":"a","command":[1]})").first ==
        "exec: 'command' is not a list of texts");
  CHECK(Check("exec", R"({"sandbox":"a","env":{"A":1}})").first ==
        "exec: 'env' is not an object of texts");
  CHECK(Check("exec", R"({"sandbox":"a","window":-1})").first ==
        "exec: 'window' is not a whole number");
  CHECK(Check("exec", R"({"sandbox":"a","scrpt":"x"})") ==
        std::pair<std::string, std::string>("exec: there is no member 'scrpt'", "script"));
  CHECK(Check("create", R"({"policy":"p","env":["A=b"],"apply":true})").first.empty());
  CHECK(Check("create", R"({"env":"A=b","policy":7})").first.empty());
  CHECK(Check("create", R"({"polciy":"p"})").second == "policy");
  CHECK(Check("create", R"({"apply":"yes"})").first == "create: 'apply' is not true or false");
}

TEST_CASE("an unknown method has the nearest name as its hint") {
  Result<const Method*> found = FindMethod(All(), "exce");
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().hint == "exec");
}

TEST_CASE("bytes are text or Base64") {
  CHECK(BytesOf(Params(R"({"text":"a\u0000b"})")).value() == std::string("a\0b", 3));
  CHECK(BytesOf(Params(R"({"base64":"AP8="})")).value() == std::string("\0\xff", 2));
  CHECK(BytesOf(Params("{}")).value().empty());
  CHECK_FALSE(BytesOf(Params(R"({"text":"a","base64":"AP8="})")).ok());
  CHECK_FALSE(BytesOf(Params(R"({"base64":"%"})")).ok());
}

TEST_CASE("a command is quoted, and what is set around it has a shell of its own") {
  CHECK(ScriptOf(Params(R"({"command":["echo","a'b"]})")).value() == "'echo' 'a'\\''b'");
  CHECK(ScriptOf(Params(R"({"script":"x=1"})")).value() == "x=1");
  CHECK(ScriptOf(Params(R"({"script":"x","directory":"/d","env":{"A":"b c"}})")).value() ==
        "(\n\\command cd -- '/d' || \\exit 1\n\\export A='b c'\n\\eval 'x'\n)");
  CHECK(ScriptOf(Params(R"({"script":"x","merge":true})")).value() == "{ \\eval 'x'\n} 2>&1");
  CHECK_FALSE(ScriptOf(Params("{}")).ok());
  CHECK_FALSE(ScriptOf(Params(R"({"script":"x","command":["x"]})")).ok());
  CHECK_FALSE(ScriptOf(Params(R"({"command":[]})")).ok());
  CHECK_FALSE(ScriptOf(Params(R"({"script":"x","env":{"A;b":"c"}})")).ok());
}

}  // namespace
}  // namespace serve
