// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/usage_meter.h"

#include <catch2/catch.hpp>

#include "codec/text/base64.h"

namespace gateway {
namespace {

TokenUsage Measure(ModelApi api, std::string_view type, const std::string& body, size_t piece,
                   bool complete = true) {
  UsageMeter meter(api, type, 0);
  for (size_t at = 0; at < body.size(); at += piece) {
    meter.Feed(std::string_view(body).substr(at, piece));
  }
  return meter.Finish(complete);
}

// One message of AWS's event stream, with headers that are not read.
std::string AwsMessage(const std::string& payload) {
  auto number = [](size_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
  };
  std::string headers = "\x05:type";
  return number(16 + headers.size() + payload.size()) + number(headers.size()) + "crc1" + headers +
         payload + "crc2";
}

const std::string kAnthropicStream =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"model":"claude-sonnet-4-5-20250929","usage":)"
    R"({"input_tokens":12,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,)"
    R"("output_tokens":1}}})"
    "\n\nevent: content_block_delta\n"
    R"(data: {"type":"content_block_delta","delta":{"text":"hello"}})"
    "\n\nevent: message_delta\n"
    R"(data: {"type":"message_delta","usage":{"output_tokens":34}})"
    "\n\n";

}  // namespace

TEST_CASE("An Anthropic stream is counted the same however it is cut into pieces") {
  for (size_t piece : {size_t{1}, size_t{7}, size_t{10000}}) {
    TokenUsage usage =
        Measure(ModelApi::kAnthropic, "text/event-stream; charset=utf-8", kAnthropicStream, piece);
    CHECK(usage.found);
    CHECK(usage.model == "claude-sonnet-4-5-20250929");
    CHECK(usage.input == 12);
    CHECK(usage.output == 34);
    CHECK(usage.cache_read == 2000);
    CHECK(usage.cache_write == 100);
  }
}

TEST_CASE(
    "Other vendors' models behind Vertex and Bedrock are counted in the form they answer in") {
  const std::string body = R"({"usage":{"prompt_tokens":60,"completion_tokens":40}})";
  for (ModelApi api : {ModelApi::kAnthropic, ModelApi::kBedrock}) {
    TokenUsage usage = Measure(api, "application/json", body, 100);
    CHECK(usage.input == 60);
    CHECK(usage.output == 40);
  }
}

TEST_CASE("OpenAI's cached tokens are taken out of its input") {
  TokenUsage chat =
      Measure(ModelApi::kOpenAi, "application/json",
              R"({"model":"gpt-5","choices":[],"usage":{"prompt_tokens":100,)"
              R"("completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60}}})",
              16);
  CHECK(chat.input == 40);
  CHECK(chat.cache_read == 60);
  CHECK(chat.output == 9);
  TokenUsage responses = Measure(
      ModelApi::kOpenAiResponses, "text/event-stream",
      "event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":"
      "\"gpt-5\",\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":20},"
      "\"output_tokens\":7}}}\r\n\r\n",
      5);
  CHECK(responses.model == "gpt-5");
  CHECK(responses.input == 30);
  CHECK(responses.output == 7);
}

TEST_CASE("Gemini's thoughts count as output, whether it streams events or one array") {
  std::string first = R"({"modelVersion":"gemini-2.5-pro","usageMetadata":{"promptTokenCount":10,)"
                      R"("candidatesTokenCount":1}})";
  std::string last = R"({"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,)"
                     R"("thoughtsTokenCount":20,"cachedContentTokenCount":4}})";
  TokenUsage array =
      Measure(ModelApi::kGemini, "application/json", "[" + first + ",\n" + last + "]", 11);
  TokenUsage events = Measure(ModelApi::kGemini, "text/event-stream",
                              "data: " + first + "\n\ndata: " + last + "\n\n", 11);
  for (const TokenUsage& usage : {array, events}) {
    CHECK(usage.model == "gemini-2.5-pro");
    CHECK(usage.input == 6);
    CHECK(usage.cache_read == 4);
    CHECK(usage.output == 25);
  }
}

TEST_CASE("Bedrock is counted in its own operation, in a wrapped stream and in a plain answer") {
  TokenUsage converse =
      Measure(ModelApi::kBedrock, "application/vnd.amazon.eventstream",
              AwsMessage(R"({"contentBlockIndex":0})") +
                  AwsMessage(R"({"usage":{"inputTokens":8,"outputTokens":3,"totalTokens":11}})"),
              3);
  CHECK(converse.input == 8);
  CHECK(converse.output == 3);
  auto wrapped = [](const std::string& inner) {
    return AwsMessage("{\"bytes\":\"" + codec::EncodeBase64(inner) + "\"}");
  };
  TokenUsage stream = Measure(
      ModelApi::kBedrock, "application/vnd.amazon.eventstream",
      wrapped(
          R"({"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}})") +
          wrapped(R"({"type":"message_delta","usage":{"output_tokens":17}})"),
      13);
  CHECK(stream.input == 5);
  CHECK(stream.output == 17);
  TokenUsage plain = Measure(ModelApi::kBedrock, "application/json",
                             R"({"usage":{"input_tokens":2,"output_tokens":4}})", 100);
  CHECK(plain.total() == 6);
}

TEST_CASE("An answer that does not say what it used is estimated, and said to be") {
  TokenUsage usage =
      Measure(ModelApi::kOpenAi, "text/event-stream",
              "data: {\"choices\":[]}\n\ndata: {\"choices\":[]}\n\ndata: [DONE]\n\n", 9);
  CHECK_FALSE(usage.found);
  CHECK(usage.estimated);
  CHECK(usage.output == 3);
}

TEST_CASE(
    "A hostile answer cannot make counts negative, or make the meter keep more than its bound") {
  TokenUsage negative = Measure(ModelApi::kAnthropic, "application/json",
                                R"({"usage":{"input_tokens":-5,"output_tokens":"x"}})", 50);
  CHECK(negative.estimated);
  CHECK(negative.input == 0);
  CHECK(negative.output == 12);
  UsageMeter meter(ModelApi::kBedrock, "application/vnd.amazon.eventstream", 0);
  meter.Feed(std::string("\xff\xff\xff\xff\x00\x00\x00\x00zzzz", 12));
  meter.Feed(AwsMessage(R"({"usage":{"inputTokens":8}})"));
  CHECK_FALSE(meter.Finish(true).found);
}

TEST_CASE("Counts of an answer are bounded, and so are sums of them") {
  const std::string most = "9223372036854775807";
  const std::string half = "4611686018427387904";
  TokenUsage two = Measure(ModelApi::kAnthropic, "application/json",
                           R"({"usage":{"input_tokens":)" + half + R"(,"output_tokens":)" + half +
                               R"(,"cache_read_input_tokens":1}})",
                           1000);
  CHECK(two.total() == 2 * kTokensOfAnswerMax + 1);
  TokenUsage gemini = Measure(
      ModelApi::kGemini, "application/json",
      R"({"usageMetadata":{"promptTokenCount":)" + most + R"(,"toolUsePromptTokenCount":)" + most +
          R"(,"candidatesTokenCount":)" + most + R"(,"thoughtsTokenCount":)" + most + "}}",
      1000);
  CHECK(gemini.total() == 4 * kTokensOfAnswerMax);
}

TEST_CASE("A stream that was cut off has used at least what it said") {
  std::string cut = kAnthropicStream.substr(0, kAnthropicStream.find("event: message_delta"));
  for (int i = 0; i < 50; ++i) cut += "data: {\"type\":\"content_block_delta\"}\n\n";
  TokenUsage usage = Measure(ModelApi::kAnthropic, "text/event-stream", cut, 100, false);
  CHECK(usage.found);
  CHECK(usage.estimated);
  CHECK(usage.input == 12);
  CHECK(usage.output == 52);
  // That it ended in order says no more.
  CHECK(Measure(ModelApi::kAnthropic, "text/event-stream", cut, 100, true).output == 52);
  // The last count is more than that.
  TokenUsage late =
      Measure(ModelApi::kAnthropic, "text/event-stream", kAnthropicStream, 100, false);
  CHECK(late.output == 34);
  CHECK_FALSE(late.estimated);
  std::string aws;
  for (int i = 0; i < 20; ++i) aws += AwsMessage(R"({"contentBlockDelta":{}})");
  CHECK(Measure(ModelApi::kBedrock, "application/vnd.amazon.eventstream", aws, 100, false).output ==
        20);
  TokenUsage nothing = Measure(ModelApi::kOpenAi, "text/event-stream", "", 1, false);
  CHECK(nothing.estimated);
  CHECK(nothing.output == 0);
}

TEST_CASE("A model's name is recognised without vendor, region, date and version") {
  for (const char* name :
       {"claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-latest",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929",
        "publishers/anthropic/models/claude-sonnet-4-5@20250929",
        "anthropic.claude-sonnet-4-5-20250929-v1%3A0"}) {
    CHECK(PlainModelName(name) == "claude-sonnet-4-5");
  }
  CHECK(PlainModelName("claude-opus-4-10") == "claude-opus-4-10");
}

TEST_CASE("Other APIs of models are uncountable, and paths that only look like them are not") {
  for (const char* path : {"/v1/complete",
                           "/v1/fim/completions",
                           "/v1/agents/completions",
                           "/v1/conversations/",
                           "/v1beta/interactions",
                           "/v1/threads/runs",
                           "/v1/threads/thread_1/runs",
                           "/api/generate",
                           "/v2/chat",
                           "/API/chat",
                           "/v1/realtime/calls",
                           "/v1/realtime/client_secrets",
                           "/v1beta/models/gemini-embedding-001:embedContent",
                           "/v1beta/models/gemini-2.5-pro:generateAnswer",
                           "/v1/evals/e/runs",
                           "/v1/ocr",
                           "/v1/chat",
                           "/v1/projects/p/locations/l/endpoints/7:serverStreamingPredict",
                           "/model/x/invoke-with-bidirectional-stream",
                           "/retrieveAndGenerate",
                           "/agents/A/agentAliases/B/sessions/C/text",
                           "/google.ai.generativelanguage.v1beta.GenerativeService/GenerateContent",
                           "/google.cloud.aiplatform.v1.PredictionService/StreamGenerateContent"}) {
    INFO(path);
    CHECK(RecogniseModelCall("POST", path).api == ModelApi::kUncountable);
    CHECK(RecogniseModelCall("GET", path).api == ModelApi::kNone);
  }
  for (const char* path :
       {"/v1/threads", "/v1/threads/thread_1", "/v1/threads/thread_1/messages",
        "/v1/threads/thread_1/runs/run_1/cancel", "/api/chats", "/v1beta/models/x:countTokens",
        "/google.ai.generativelanguage.v1beta.GenerativeService/CountTokens",
        "/v1/publishers/anthropic/models/count-tokens:rawPredict", "/api/event_logging/v2/batch",
        "/v1/tunedModels:generateContents"}) {
    INFO(path);
    CHECK(RecogniseModelCall("POST", path).api == ModelApi::kNone);
  }
  CHECK(RecogniseModelCall("GET", "/ws/x.BidiGenerateContentConstrained", true).api ==
        ModelApi::kSocket);
}

TEST_CASE("Model calls are recognised by path, batches as uncountable, and nothing else") {
  CHECK(RecogniseModelCall("POST", "/v1/messages").api == ModelApi::kAnthropic);
  CHECK(RecogniseModelCall("GET", "/v1/messages").api == ModelApi::kNone);
  CHECK(RecogniseModelCall("post", "/v1/Messages/").api == ModelApi::kAnthropic);
  CHECK(RecogniseModelCall("GET", "/v1/responses").api == ModelApi::kNone);
  CHECK(RecogniseModelCall("GET", "/v1/responses", true).api == ModelApi::kSocket);
  CHECK(RecogniseModelCall("POST", "/v1/messages/batches").api == ModelApi::kUncountable);
  CHECK(RecogniseModelCall("POST", "/v1/messages/count_tokens").api == ModelApi::kNone);
  CHECK(RecogniseModelCall("POST", "/openai/v1/chat/completions").api == ModelApi::kOpenAi);
  CHECK(RecogniseModelCall("POST", "/v1/responses").api == ModelApi::kOpenAiResponses);
  ModelCall gemini =
      RecogniseModelCall("POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent");
  CHECK(gemini.api == ModelApi::kGemini);
  CHECK(gemini.model == "gemini-2.5-pro");
  ModelCall vertex = RecogniseModelCall(
      "POST", "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict");
  CHECK(vertex.api == ModelApi::kAnthropic);
  CHECK(vertex.model == "claude-x");
  CHECK(RecogniseModelCall("POST", "/v1/responses/compact").api == ModelApi::kOpenAiResponses);
  struct Case {
    const char* path;
    ModelApi api;
    const char* model;
  };
  for (const Case& row :
       {Case{"/v1/projects/p/locations/l/endpoints/7:generateContent", ModelApi::kGemini, "7"},
        Case{"/v1/projects/p/locations/l/endpoints/7:rawPredict", ModelApi::kAnthropic, "7"},
        Case{"/v1beta/tunedModels/mine:streamGenerateContent", ModelApi::kGemini, "mine"},
        Case{"/v1beta/dynamic/x%3AgenerateContent", ModelApi::kGemini, "x"},
        Case{"/v1internal:streamGenerateContent", ModelApi::kGemini, ""},
        Case{"/openai/deployments/d/chat/completions", ModelApi::kOpenAi, "d"},
        Case{"/openai/deployments/d/completions", ModelApi::kOpenAi, "d"},
        Case{"/shell/completions", ModelApi::kNone, ""}}) {
    CAPTURE(row.path);
    ModelCall call = RecogniseModelCall("POST", row.path);
    CHECK(call.api == row.api);
    CHECK(call.model == row.model);
  }
  ModelCall bedrock = RecogniseModelCall("POST", "/model/anthropic.claude-x-v1:0/invoke");
  CHECK(bedrock.api == ModelApi::kBedrock);
  CHECK(bedrock.model == "anthropic.claude-x-v1:0");
}

}  // namespace gateway
