// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp_tool.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace serve {
namespace {

const Tool& Named(const std::string& name) {
  const auto found = std::find_if(Tools().begin(), Tools().end(),
                                  [&](const Tool& tool) { return tool.method.name == name; });
  REQUIRE(found != Tools().end());
  return *found;
}

codec::Json Parsed(const std::string& text) {
  Result<codec::Json> json = codec::ParseJson(text);
  REQUIRE(json.ok());
  return json.value();
}

TEST_CASE("a call becomes a request that the protocol takes") {
  const std::pair<const char*, const char*> calls[] = {
      {"run_command", R"({"command":"x","directory":"d","timeout":5,"stdin":"in","sandbox":"s"})"},
      {"read_file", R"({"path":"p","offset":3})"},
      {"write_file", R"({"path":"p","base64":"AP8=","executable":true})"},
      {"diff", "{}"},
      {"reset", "{}"},
      {"snapshot", "{}"}};
  const std::vector<Method> methods = Methods({});
  for (const auto& [name, arguments] : calls) {
    INFO(name);
    const Tool& tool = Named(name);
    CHECK(CheckParams(tool.method, Parsed(arguments)).ok());
    const codec::Json params = RequestOf(tool, Parsed(arguments), "mine", 60);
    CHECK(params.StringAt("sandbox") == "mine");
    Result<const Method*> method = FindMethod(methods, tool.request);
    REQUIRE(method.ok());
    CHECK(CheckParams(*method.value(), params).ok());
  }
}

TEST_CASE("a model can shorten a command's time and not lengthen it") {
  auto timeout = [](const std::string& arguments) {
    return RequestOf(Named("run_command"), Parsed(arguments), "mine", 60).StringAt("timeout");
  };
  CHECK(timeout(R"({"command":"x"})") == "60s");
  CHECK(timeout(R"({"command":"x","timeout":5})") == "5s");
  CHECK(timeout(R"({"command":"x","timeout":61})") == "60s");
  CHECK(timeout(R"({"command":"x","timeout":0})") == "60s");
}

TEST_CASE("a result is told as a value and as the same text, and an error as a text") {
  const codec::Json ended = Parsed(
      R"({"reason":"exit","status":3,"stdout":"out","truncated_stdout":7,"truncated_stderr":0})");
  codec::Json told = ToolResult(Named("run_command"), Parsed("{}"), "mine", ended);
  const codec::Json* value = told.Find("structuredContent");
  REQUIRE(value != nullptr);
  CHECK(told.Find("content")->array()->front().StringAt("text") == codec::RenderJsonLine(*value));
  CHECK(value->StringAt("sandbox") == "mine");
  CHECK(value->IntegerAt("status") == 3);
  CHECK(value->IntegerAt("omitted_bytes") == 7);
  CHECK_FALSE(told.BooleanAt("isError", true));
  // A patch that is large was collected.
  const codec::Json large = Parsed(R"({"changes_complete":true,"text":"patch","truncated":9})");
  told = ToolResult(Named("diff"), Parsed("{}"), "mine", large);
  CHECK(told.Find("structuredContent")->StringAt("patch") == "patch");
  CHECK(told.Find("structuredContent")->IntegerAt("omitted_bytes") == 9);
  told = ToolResult(Named("diff"), Parsed("{}"), "mine", Error{Code::kIo, "no", "try"});
  CHECK(told.BooleanAt("isError"));
  CHECK(told.Find("structuredContent") == nullptr);
  CHECK(told.Find("content")->array()->front().StringAt("text") == "no (try)");
}

TEST_CASE("a long text keeps its beginning and end, without halves of characters") {
  int64_t omitted = 0;
  CHECK(HeadAndTail("short", 5, &omitted) == "short");
  CHECK(omitted == 0);
  CHECK(HeadAndTail("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 6, &omitted) ==
        "\xc3\xa4\n[4 bytes left out]\n\xc3\xa4");
  CHECK(omitted == 4);
}

TEST_CASE("tools that only read say so, and one that destroys says that") {
  const codec::Json list = ListOfTools();
  for (const codec::Json& tool : *list.array()) {
    const codec::Json& hints = *tool.Find("annotations");
    const std::string name = tool.StringAt("name");
    INFO(name);
    CHECK(hints.BooleanAt("readOnlyHint") == (name == "read_file" || name == "diff"));
    CHECK(hints.BooleanAt("destructiveHint") == (name == "reset"));
    CHECK(hints.BooleanAt("openWorldHint") == (name == "run_command"));
  }
}

}  // namespace
}  // namespace serve
