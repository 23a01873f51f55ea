// SPDX-License-Identifier: Apache-2.0
#include "eval/remote/agent_message.h"

#include <catch2/catch.hpp>

namespace eval {
namespace {

using codec::Json;

Json JsonOf(const std::string& text) { return codec::ParseJson(text).value(); }

const AgentTask kTask{.prompt = "Do it.", .tools_url = "http://tools", .announces_url = true};

TEST_CASE("The first of midojo's names has the answer, and it is a text") {
  Result<AgentAnswer> answer = ParseHttpAnswer(JsonOf(R"({"text":"c","output":"b"})"));
  REQUIRE(answer.ok());
  CHECK(answer.value().text == "b");
  CHECK(answer.value().whole);
  for (const char* text : {"[]", "\"x\"", "{}", R"({"response":null,"text":"x"})"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseHttpAnswer(JsonOf(text)).ok());
  }
}

TEST_CASE("Where the tools are is said by the request, unless the agent is configured with it") {
  AgentTask task = kTask;
  CHECK(codec::RenderJsonLine(RenderHttpTask(task)) ==
        R"({"prompt":"Do it.","mcp_server_url":"http://tools"})");
  task.announces_url = false;
  CHECK(codec::RenderJsonLine(RenderHttpTask(task)) == R"({"prompt":"Do it."})");
  CHECK(RenderA2aMessage(task, "m", true).Find("params")->Find("message")->Find("metadata") ==
        nullptr);
  const Json tools = *RenderResponsesTask(task).Find("tools");
  CHECK((*tools.array())[0].StringAt("server_url") == "http://tools");
}

TEST_CASE("An answer of the Responses API is the text of its messages, when it is final") {
  const std::string message =
      R"({"type":"message","content":[{"type":"output_text","text":"a"},
          {"type":"refusal","refusal":"b"}]})";
  const std::string begin = R"({"status":"completed","output":[{"type":"reasoning"},)" + message;
  Result<AgentAnswer> answer = ParseResponsesAnswer(JsonOf(begin + "," + message + "]}"));
  REQUIRE(answer.ok());
  CHECK(answer.value().ending == Ending::kEnded);
  CHECK(answer.value().text == "a\nb\na\nb");
  CHECK(answer.value().whole);
  answer = ParseResponsesAnswer(JsonOf(begin + R"(,{"type":"mcp_approval_request"}]})"));
  CHECK(answer.value().ending == Ending::kFailed);
  // A part without text may say anything, and so may an agent that sent no text.
  for (const char* output : {R"([{"type":"message","content":[{"type":"output_image"}]}])", "[]"}) {
    CAPTURE(output);
    answer = ParseResponsesAnswer(
        JsonOf(std::string(R"({"status":"completed","output":)") + output + "}"));
    REQUIRE(answer.ok());
    CHECK_FALSE(answer.value().whole);
  }
  for (const char* text : {"{}", R"({"output":[]})", R"({"status":"in_progress","output":[]})",
                           R"({"status":"completed","output":{}})"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseResponsesAnswer(JsonOf(text)).ok());
  }
}

TEST_CASE("An agent's card says which A2A it speaks, and where") {
  Result<A2aInterface> found = ParseAgentCard(JsonOf(
      R"({"url":"http://old","supportedInterfaces":[
          {"url":"http://grpc","protocolBinding":"GRPC","protocolVersion":"1.0"},
          {"url":"http://new","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]})"));
  REQUIRE(found.ok());
  CHECK(found.value().url == "http://new");
  CHECK(found.value().is_1);
  found = ParseAgentCard(JsonOf(R"({"url":"http://old","protocolVersion":"0.3.0"})"));
  CHECK(found.value().url == "http://old");
  CHECK_FALSE(found.value().is_1);
  for (const char* text : {"[]", "{}", R"({"url":"http://x","preferredTransport":"GRPC"})"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseAgentCard(JsonOf(text)).ok());
  }
}

TEST_CASE("An A2A task is asked again until it ends, and all that the agent said is its answer") {
  const auto step = [](const std::string& result) {
    return ParseA2aAnswer(JsonOf(R"({"result":)" + result + "}"));
  };
  const std::string said =
      R"("history":[{"role":"user","parts":[{"text":"asked"}]},
                    {"role":"agent","parts":[{"text":"one"}]}],
         "artifacts":[{"parts":[{"kind":"text","text":"two"}]}])";
  for (const char* state : {"working", "TASK_STATE_SUBMITTED"}) {
    Result<A2aStep> left = step(R"({"id":"t","status":{"state":")" + std::string(state) + "\"}}");
    REQUIRE(left.ok());
    CHECK_FALSE(left.value().answer);
    CHECK(left.value().task_id == "t");
  }
  Result<A2aStep> ended = step(
      R"({"task":{"status":{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"three"}]}},)" +
      said + "}}");
  REQUIRE(ended.ok());
  CHECK(ended.value().answer->text == "one\ntwo\nthree");
  CHECK(ended.value().answer->whole);
  ended = step(R"({"status":{"state":"input-required"},)" + said + "}");
  CHECK(ended.value().answer->ending == Ending::kFailed);
  CHECK_FALSE(ended.value().answer->whole);
  ended = step(R"({"kind":"message","parts":[{"kind":"text","text":"a"},{"kind":"data"}]})");
  CHECK(ended.value().answer->text == "a");
  CHECK_FALSE(ended.value().answer->whole);
  for (const char* result : {"null", "{}", R"({"task":{}})", R"({"status":{"state":"working"}})"}) {
    CAPTURE(result);
    CHECK_FALSE(step(result).ok());
  }
  CHECK(ParseA2aAnswer(JsonOf(R"({"error":{"message":"no"}})")).error().what ==
        "the agent says: no");
}

}  // namespace
}  // namespace eval
