// SPDX-License-Identifier: Apache-2.0
// A budget counts at least what the server bills, in every form of an answer: a table of APIs and
// forms.
#include <catch2/catch.hpp>

#include "gateway/budget/budget.h"

namespace gateway {
namespace {

constexpr int64_t kInput = 1000;        // The bill for each request...
constexpr int64_t kOutput = 10'000;     // ...and each answer, whose text is...
constexpr int64_t kTextBytes = 40'000;  // ...that long.
constexpr const char* kEvents = "text/event-stream";
constexpr const char* kJson = "application/json";

// One of the four APIs, in the words of its requests and answers.
struct Family {
  const char* target;
  std::string bound;    // The member of a request that allows 12,000 tokens of output.
  std::string choices;  // Likewise, three answers; empty if there is no such member.
  std::string refers;   // To input that is not there; empty if every event says the input.
  std::string (*start)();
  std::string (*text)(const std::string& text);     // An event with a piece of text.
  std::string (*usage)(const std::string& output);  // The last events, with the count of output.
  std::string (*tool)();                            // The provider's own tool; "" if none is shown.
  std::string (*document)(const std::string& text, const std::string& output);
  std::string end;  // The end of a stream, without a count.
};

std::string Line(const std::string& json) { return "data: " + json + "\n\n"; }

const Family kAnthropicForms = {
    "/v1/messages",
    R"("max_tokens":12000)",
    "",
    "",
    [] {
      return Line(R"({"type":"message_start","message":{"model":"m","usage":)"
                  R"({"input_tokens":1000,"output_tokens":1}}})");
    },
    [](const std::string& text) {
      return Line(
          R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":")" +
          text + "\"}}");
    },
    [](const std::string& output) {
      return Line(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":)"
                  R"({"output_tokens":)" +
                  output + "}}") +
             Line(R"({"type":"message_stop"})");
    },
    [] {
      return Line(R"({"type":"content_block_start","content_block":{"type":"server_tool_use"}})");
    },
    [](const std::string& text, const std::string& output) {
      return R"({"model":"m","content":[{"type":"text","text":")" + text +
             R"("}],"usage":{"input_tokens":1000,"output_tokens":)" + output + "}}";
    },
    Line(R"({"type":"message_stop"})")};

const Family kChatForms = {
    "/v1/chat/completions",
    R"("max_completion_tokens":12000)",
    R"("n":3)",
    "",
    [] { return Line(R"({"choices":[{"index":0,"delta":{"role":"assistant"}}]})"); },
    [](const std::string& text) {
      return Line(R"({"choices":[{"index":0,"delta":{"content":")" + text + "\"}}]}");
    },
    [](const std::string& output) {
      return Line(R"({"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":)" + output +
                  "}}") +
             "data: [DONE]\n\n";
    },
    [] { return std::string(); },
    [](const std::string& text, const std::string& output) {
      return R"({"choices":[{"message":{"content":")" + text +
             R"("}}],"usage":{"prompt_tokens":1000,"completion_tokens":)" + output + "}}";
    },
    "data: [DONE]\n\n"};

const Family kResponsesForms = {
    "/v1/responses",
    R"("max_output_tokens":12000)",
    "",
    R"("previous_response_id":"resp_1")",
    [] { return Line(R"({"type":"response.created","response":{"model":"m","usage":null}})"); },
    [](const std::string& text) {
      return Line(R"({"type":"response.output_text.delta","delta":")" + text + "\"}");
    },
    [](const std::string& output) {
      // The text once more, as the API has it.
      return Line(R"({"type":"response.completed","response":{"output":[{"content":[{"text":")" +
                  std::string(kTextBytes, 'x') +
                  R"("}]}],"usage":{"input_tokens":1000,"output_tokens":)" + output + "}}}");
    },
    [] {
      return Line(R"({"type":"response.output_item.added","item":{"type":"web_search_call"}})");
    },
    [](const std::string& text, const std::string& output) {
      return R"({"output":[{"content":[{"text":")" + text +
             R"("}]}],"usage":{"input_tokens":1000,"output_tokens":)" + output + "}}";
    },
    Line(R"({"type":"response.failed","response":{"usage":null}})")};

const Family kGeminiForms = {
    "/v1beta/models/m:generateContent",
    R"("generationConfig":{"maxOutputTokens":12000})",
    R"("generationConfig":{"maxOutputTokens":12000,"candidateCount":3})",
    R"("cachedContent":"c")",
    [] { return Line(R"({"modelVersion":"m"})"); },
    [](const std::string& text) {
      return Line(R"({"candidates":[{"content":{"parts":[{"text":")" + text + "\"}]}}]}");
    },
    [](const std::string& output) {
      return Line(R"({"candidates":[{"finishReason":"STOP"}],"usageMetadata":)"
                  R"({"promptTokenCount":1000,"candidatesTokenCount":)" +
                  output + "}}");
    },
    [] { return std::string(); },
    [](const std::string& text, const std::string& output) {
      return R"({"candidates":[{"content":{"parts":[{"text":")" + text +
             R"("}]}}],"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":)" + output +
             "}}";
    },
    Line(R"({"candidates":[{"finishReason":"STOP"}]})")};

// Returns the tokens that a budget counts for one request and its response; -1 if it is refused.
int64_t Counted(const Family& api, const std::string& members, const char* type,
                const std::string& answer, bool complete = true, codec::HttpFields fields = {},
                const char* method = "POST") {
  BudgetLimits limits;
  limits.tokens = int64_t{1} << 40;
  int64_t counted = 0;
  Budget budget(limits, PriceList::BuiltIn(), {[&counted](const record::Notice& notice) {
                  for (const auto& [name, count] : notice.counts) {
                    if (name.ends_with("_tokens")) counted += count;
                  }
                }});
  OutgoingRequest request{method, api.target, fields, R"({"model":"m",)" + members + "}"};
  RequestGuard::Admission admission = budget.Admit({"api.example.com", 443}, request);
  if (admission.refusal.has_value()) return -1;
  if (admission.observer == nullptr) return 0;
  admission.observer->OnSent(kBytesPerTokenLeast * kInput);
  if (type != nullptr) {
    codec::ResponseHead head;
    head.status = 200;
    head.fields = {{"Content-Type", type}};
    admission.observer->OnHead(head);
    admission.observer->OnBody(answer);
  }
  admission.observer->OnEnd(complete);
  return counted;
}

struct Form {
  const char* name;
  const char* type;  // Null: no answer comes.
  std::string answer;
  bool complete = true;
};

// Forms of an answer that is billed kOutput, which it says wrongly, in part or nowhere. `begun` is
// the text of a stream, without its end.
std::vector<Form> FormsOf(const Family& api, const std::string& begun) {
  const std::string said = std::to_string(kOutput);
  const std::string stream = begun + api.usage(said);
  const std::string document = api.document(std::string(kTextBytes, 'x'), said);
  std::string compressed = "\x1f\x8b\x08";
  compressed += std::string(300, '\xa7');
  const std::string hidden = api.start() + api.text("42");
  return {
      Form{"not said", kEvents, begun + api.end},
      Form{"not said, in one event", kEvents,
           api.start() + api.text(std::string(kTextBytes, 'x')) + api.end},
      Form{"not said, no end", kEvents, begun},
      Form{"not said, cut", kEvents, begun, false},
      Form{"cut after its first event", kEvents, api.start(), false},
      Form{"cut before any", kEvents, "", false},
      Form{"cut within the event that says it", kEvents, stream.substr(0, begun.size() + 20),
           false},
      Form{"ended within the event that says it", kEvents, stream.substr(0, begun.size() + 20)},
      Form{"hidden thoughts, not said", kEvents, hidden + api.end},
      Form{"hidden thoughts, cut", kEvents, hidden, false},
      Form{"said too little", kEvents, begun + api.usage("1")},
      Form{"said to be nothing", kEvents, begun + api.usage("0")},
      Form{"negative", kEvents, begun + api.usage("-5")},
      Form{"no number", kEvents, begun + api.usage("\"x\"")},
      Form{"null", kEvents, begun + api.usage("null")},
      Form{"less, then all", kEvents, begun + api.usage("5000") + api.usage(said)},
      Form{"all, then less", kEvents, begun + api.usage(said) + api.usage("5000")},
      Form{"document, not said", kJson, R"({"model":"m"})"},
      Form{"document, cut", kJson, document.substr(0, document.size() - 3), false},
      Form{"document, wrong", kJson, api.document(std::string(kTextBytes, 'x'), "1")},
      Form{"no JSON", "text/plain", "42"},
      Form{"compressed document", kJson, compressed},
      Form{"compressed stream", kEvents, compressed},
      Form{"never answered", nullptr, "", false},
  };
}

}  // namespace

TEST_CASE("No form of an answer counts a tenth less than its server bills") {
  const std::string said = std::to_string(kOutput);
  const std::string piece(kTextBytes / 10, 'x');
  for (const Family* family : {&kAnthropicForms, &kChatForms, &kResponsesForms, &kGeminiForms}) {
    const Family& api = *family;
    CAPTURE(api.target);
    std::string begun = api.start();
    for (int i = 0; i < 10; ++i) begun += api.text(piece);
    const std::string stream = begun + api.usage(said);
    // The control: what is said is what is counted.
    for (const std::string& bound : {api.bound, std::string(R"("x":1)")}) {
      CHECK(Counted(api, bound, kEvents, stream) == kInput + kOutput);
      CHECK(Counted(api, bound, kJson, api.document(std::string(kTextBytes, 'x'), said)) ==
            kInput + kOutput);
    }
    for (const Form& form : FormsOf(api, begun)) {
      CAPTURE(form.name);
      CHECK(Counted(api, api.bound, form.type, form.answer, form.complete) * 10 >=
            (kInput + kOutput) * 9);
      // It may be as long as any: the request does not say.
      CHECK(Counted(api, R"("x":1)", form.type, form.answer, form.complete) >= kInput + kOutput);
    }
    if (!api.choices.empty()) {
      CHECK(Counted(api, api.choices + (api.choices[1] == 'n' ? "," + api.bound : ""), kEvents,
                    begun, false) >= kInput + 3 * kOutput);
      CHECK(Counted(api, R"("x":1)", kEvents, begun, false) >= kInput + 3 * kOutput);
    }
    if (!api.refers.empty()) {
      CHECK(Counted(api, api.bound + "," + api.refers, kEvents, begun, false) > kInputTokensUnseen);
      CHECK(Counted(api, api.bound + "," + api.refers, kEvents, stream) == kInput + kOutput);
    }
    if (!api.tool().empty()) {
      CHECK(Counted(api, api.bound, kEvents, begun + api.tool(), false) > kInputTokensUnseen);
      CHECK(Counted(api, api.bound, kEvents, begun + api.tool() + api.usage(said)) ==
            kInput + kOutput);
    }
  }
}

TEST_CASE("A client that closes after the last event pays for what it says") {
  const std::string said = std::to_string(kOutput);
  for (const Family* api : {&kAnthropicForms, &kChatForms, &kResponsesForms}) {
    CAPTURE(api->target);
    CHECK(Counted(*api, R"("x":1)", kEvents, api->start() + api->text("x") + api->usage(said),
                  false) == kInput + kOutput);
  }
}

TEST_CASE("A count in the middle of a stream is not the whole") {
  auto chat = [](const std::string& output) {
    return Line(R"({"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":1000,)"
                R"("completion_tokens":)" +
                output + "}}");
  };
  CHECK(Counted(kChatForms, kChatForms.bound, kEvents, chat("1") + chat("2"), false) ==
        kInput + 12'000);
  CHECK(Counted(kChatForms, kChatForms.bound, kEvents, chat("1") + chat("2")) == kInput + 2);
  CHECK(Counted(kGeminiForms, kGeminiForms.bound, kEvents, kGeminiForms.usage("2"), false) ==
        kInput + 12'000);
}

TEST_CASE("Thoughts that are in the total alone are counted") {
  CHECK(Counted(kChatForms, R"("x":1)", kJson,
                R"({"usage":{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":11000}})") ==
        kInput + kOutput);
  CHECK(Counted(kGeminiForms, R"("x":1)", kJson,
                R"({"usageMetadata":{"promptTokenCount":1000,"totalTokenCount":11000}})") ==
        kInput + kOutput);
}

TEST_CASE("Embeddings have no output, said or not") {
  Family embeddings = kChatForms;
  embeddings.target = "/v1/embeddings";
  const std::string input = R"("input":["x"])";
  CHECK(Counted(embeddings, input, kJson,
                R"({"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}})") ==
        7);
  CHECK(Counted(embeddings, input, kJson, "", false) == kInput);
}

TEST_CASE("What a request allows is read where its API has it, and not where it ignores it") {
  struct Case {
    ModelApi api;
    const char* members;
    int64_t most;
  };
  constexpr int64_t kMost = kOutputTokensUnsaid;
  for (const Case& row :
       {Case{ModelApi::kAnthropic, R"("max_tokens":7)", 7},
        Case{ModelApi::kAnthropic, R"("max_output_tokens":7)", kMost},
        Case{ModelApi::kAnthropic, R"("max_tokens":7,"thinking":{"budget_tokens":90})", 90},
        Case{ModelApi::kAnthropic, R"("max_tokens":-7)", kMost},
        Case{ModelApi::kAnthropic, R"("max_tokens":"7")", kMost},
        Case{ModelApi::kAnthropic, R"("max_tokens":7,"Max_tokens":9)", kMost},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"max_completion_tokens":9)", 9},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"n":3,"best_of":4)", 28},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"n":"3")", 7 * kChoicesMax},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"n":null)", 7},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"prompt":["a","b"])", 14},
        Case{ModelApi::kOpenAi, R"("max_tokens":7,"prompt":[1,2])", 7},
        Case{ModelApi::kOpenAi, R"("input":"x")", 0},
        Case{ModelApi::kOpenAi, R"("input":"x","messages":[])", kMost},
        Case{ModelApi::kOpenAiResponses, R"("max_output_tokens":7)", 7},
        Case{ModelApi::kOpenAiResponses, R"("max_tokens":7)", kMost},
        Case{ModelApi::kGemini, R"("generation_config":{"max_output_tokens":7})", 7},
        Case{ModelApi::kGemini, R"("request":{"generationConfig":{"maxOutputTokens":7}})", 7},
        Case{ModelApi::kGemini, R"("generationConfig":{"candidateCount":2})", 2 * kMost},
        Case{ModelApi::kGemini, R"("maxOutputTokens":7)", kMost},
        Case{ModelApi::kBedrock, R"("inferenceConfig":{"maxTokens":7})", 7},
        Case{ModelApi::kBedrock, R"("max_tokens":7)", 7}}) {
    CAPTURE(row.members);
    CHECK(ReadPromptBody(row.api, "{" + std::string(row.members) + "}").output_max == row.most);
  }
  CHECK(ReadPromptBody(ModelApi::kAnthropic, "no JSON").output_max == kMost);
}

TEST_CASE("Pictures and what a question only refers to are counted where its use is not said") {
  constexpr int64_t kUnseen = kInputTokensUnseen;
  constexpr int64_t kPicture = kInputTokensOfPicture;
  constexpr ModelApi kChat = ModelApi::kOpenAi;
  constexpr ModelApi kResponses = ModelApi::kOpenAiResponses;
  struct Case {
    ModelApi api;
    const char* members;
    int64_t unseen;
  };
  for (const Case& row : {
           Case{ModelApi::kAnthropic, R"("messages":[{"content":"hi"}])", 0},
           Case{ModelApi::kAnthropic, R"("messages":[{"content":[{"type":"document","source":
             {"type":"url","url":"https://e.example/1.pdf"}}]}])",
                kUnseen},
           Case{ModelApi::kAnthropic, R"("messages":[{"content":[{"type":"x","source":
             {"type":"file","file_id":"f"}}]}])",
                kUnseen},
           Case{ModelApi::kAnthropic, R"("messages":[{"content":[{"type":"image","source":{}},
             {"type":"tool_result","content":[{"type":"image"}]}]}])",
                2 * kPicture},
           Case{ModelApi::kAnthropic, R"("tools":[{"input_schema":{"properties":{"file_id":{}}}}])",
                0},
           Case{kChat, R"("messages":[{"content":[{"type":"image_url","image_url":{}}]}])",
                kPicture},
           Case{kChat, R"("messages":[{"content":[{"type":"file","file":{"file_id":"f"}}]}])",
                kUnseen},
           Case{kChat, R"("prompt":"text")", 0},
           Case{kResponses, R"("previous_response_id":"r")", kUnseen},
           Case{kResponses, R"("previous_response_id":null)", 0},
           Case{kResponses, R"("conversation":{"id":"c"})", kUnseen},
           Case{kResponses, R"("prompt":{"id":"p"})", kUnseen},
           Case{kResponses, R"("input":[{"content":[{"type":"input_file","file_id":"f"}]}])",
                kUnseen},
           Case{kResponses, R"("input":[{"content":[{"type":"input_image"}]}])", kPicture},
           Case{ModelApi::kGemini, R"("cachedContent":"c")", kUnseen},
           Case{ModelApi::kGemini, R"("cached_content":"c")", kUnseen},
           Case{ModelApi::kGemini, R"("contents":[{"parts":[{"fileData":{"fileUri":"u"}}]}])",
                kUnseen},
           Case{ModelApi::kGemini, R"("contents":[{"parts":[{"inlineData":
             {"mimeType":"image/png","data":""}}]}])",
                kPicture},
           Case{ModelApi::kGemini, R"("contents":[{"parts":[{"inline_data":
             {"mime_type":"application/pdf","data":""}}]}])",
                kUnseen},
           Case{ModelApi::kBedrock, R"("messages":[{"content":[{"image":{"format":"png"}}]}])",
                kPicture},
           Case{ModelApi::kBedrock, R"("messages":[{"content":[{"document":{"format":"pdf"}}]}])",
                kUnseen},
       }) {
    CAPTURE(row.members);
    CHECK(ReadPromptBody(row.api, "{" + std::string(row.members) + "}").unseen == row.unseen);
  }
}

TEST_CASE("A request is a question to a model in each spelling that servers understand") {
  const std::string whole = kAnthropicForms.document("x", "10000");
  auto counted = [&](const char* target, const codec::HttpFields& fields, const char* method) {
    Family api = kAnthropicForms;
    api.target = target;
    return Counted(api, api.bound, kJson, whole, true, fields, method);
  };
  constexpr int64_t kBill = kInput + kOutput;
  CHECK(counted("/v1/messages", {}, "POST") == kBill);
  CHECK(counted("/v1/messages//", {}, "POST") == kBill);
  CHECK(counted("/v1/messages", {{"Upgrade", "x"}}, "POST") == kBill);
  CHECK(counted("/v1/messages", {{"X-HTTP-Method-Override", "POST"}}, "GET") == kBill);
  CHECK(counted("/v1/messages", {{"x_http_method", "post"}}, "PUT") == kBill);
  CHECK(counted("/v1/messages", {}, "GET") == 0);
  CHECK(Counted(kAnthropicForms, kAnthropicForms.bound, kJson,
                kAnthropicForms.document("x", "10000.0")) == kBill);
}

TEST_CASE("What would be used beyond the answer is refused: batches, work in the background") {
  CHECK(Counted(kResponsesForms, R"("background":true)", kJson, "{}") == -1);
  for (const char* target :
       {"/v1/messages/batches", "/v1/batches", "/v1beta/models/m:batchGenerateContent"}) {
    Family batches = kChatForms;
    batches.target = target;
    CHECK(Counted(batches, R"("x":1)", kJson, "{}") == -1);
  }
}

}  // namespace gateway
