// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/usage_meter.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "gateway/budget/limits.h"

namespace gateway {
namespace {

using codec::Json;

// A count of an answer: no sum of a few of them overflows, and none is negative.
// Some brokers write 100.0.
int64_t Count(const Json& usage, const char* name) {
  const Json* found = usage.Find(name);
  const double said = found != nullptr ? found->number().value_or(0) : 0;
  return static_cast<int64_t>(std::clamp<double>(said, 0, kTokensOfAnswerMax));
}

// Anthropic's streams tell each count when they know it, and repeat it as it grows.
void Raise(int64_t* count, int64_t seen) { *count = std::max(*count, seen); }

// input_tokens leaves out what the cache had; messages and Vertex's rawPredict.
void TakeAnthropic(const Json& usage, TokenUsage* total) {
  Raise(&total->input, Count(usage, "input_tokens"));
  Raise(&total->output, Count(usage, "output_tokens"));
  Raise(&total->cache_read, Count(usage, "cache_read_input_tokens"));
  Raise(&total->cache_write, Count(usage, "cache_creation_input_tokens"));
}

// Takes a report in which the cached tokens are part of the input and `all` of both, unless an
// earlier one has more.
void TakeWhole(int64_t input, int64_t cached, int64_t output, int64_t all, TokenUsage* total) {
  if (input >= total->input + total->cache_read) {
    total->cache_read = cached;
    total->input = std::max<int64_t>(input - cached, 0);
  }
  // Some leave thoughts out of the output, but not out of the total.
  Raise(&total->output, std::max(output, all - input));
}

// Both of OpenAI's APIs.
void TakeOpenAi(const Json& usage, const char* input, const char* output, const char* details,
                TokenUsage* total) {
  const Json* detail = usage.Find(details);
  TakeWhole(Count(usage, input), detail != nullptr ? Count(*detail, "cached_tokens") : 0,
            Count(usage, output), Count(usage, "total_tokens"), total);
}

void TakeGemini(const Json& usage, TokenUsage* total) {
  TakeWhole(Count(usage, "promptTokenCount") + Count(usage, "toolUsePromptTokenCount"),
            Count(usage, "cachedContentTokenCount"),
            Count(usage, "candidatesTokenCount") + Count(usage, "thoughtsTokenCount"),
            Count(usage, "totalTokenCount"), total);
}

void TakeConverse(const Json& usage, TokenUsage* total) {
  Raise(&total->input, Count(usage, "inputTokens"));
  Raise(&total->output, Count(usage, "outputTokens"));
  Raise(&total->cache_read, Count(usage, "cacheReadInputTokens"));
  Raise(&total->cache_write, Count(usage, "cacheWriteInputTokens"));
}

void TakeCompletion(const Json& usage, TokenUsage* total) {
  TakeOpenAi(usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details", total);
}

void TakeUsage(ModelApi api, const Json& usage, TokenUsage* total) {
  if (usage.object() == nullptr) return;
  total->found = true;
  // Models of other vendors answer in this form behind Vertex's rawPredict and Bedrock's invoke.
  const bool completion = usage.Find("prompt_tokens") != nullptr;
  switch (api) {
    case ModelApi::kAnthropic:
      return completion ? TakeCompletion(usage, total) : TakeAnthropic(usage, total);
    case ModelApi::kOpenAi:
      return TakeCompletion(usage, total);
    case ModelApi::kOpenAiResponses:
      return TakeOpenAi(usage, "input_tokens", "output_tokens", "input_tokens_details", total);
    case ModelApi::kGemini:
      return TakeGemini(usage, total);
    case ModelApi::kBedrock:
      // Its own operation, or the model's own answer inside `invoke`.
      if (usage.Find("inputTokens") != nullptr) return TakeConverse(usage, total);
      if (completion) return TakeCompletion(usage, total);
      return TakeAnthropic(usage, total);
    case ModelApi::kNone:
    case ModelApi::kUncountable:
    case ModelApi::kSocket:
      break;
  }
}

// Returns whether a report of usage has a count of the output, in any API's name for it. That of
// embeddings has none beside the total.
bool SaysOutput(const Json& usage) {
  for (const char* name : {"output_tokens", "completion_tokens", "total_tokens", "outputTokens",
                           "candidatesTokenCount", "totalTokenCount", "outputTokenCount"}) {
    const Json* count = usage.Find(name);
    if (count != nullptr && count->number().value_or(-1) >= 0) return true;
  }
  return false;
}

// Returns the bytes of what a model wrote in a part of its answer: text, thoughts, the arguments of
// tools. What the provider's own tools found is in there too, and is input. `all`: every text.
int64_t TextBytes(const Json& value, bool all) {
  constexpr auto kTexts =
      std::to_array<std::string_view>({"text", "content", "thinking", "partial_json", "reasoning",
                                       "reasoning_content", "refusal", "arguments"});
  int64_t bytes = 0;
  if (const std::string* text = value.string()) return all ? static_cast<int64_t>(text->size()) : 0;
  if (const Json::Array* items = value.array()) {
    for (const Json& item : *items) bytes += TextBytes(item, all);
  }
  if (value.object() == nullptr || value.StringAt("type").ends_with("_tool_result")) return bytes;
  for (const auto& [name, inner] : *value.object()) {
    const bool text = std::ranges::find(kTexts, name) != kTexts.end() && inner.string() != nullptr;
    bytes += TextBytes(inner, all || text || name == "args" || name == "input");
  }
  return bytes;
}

// Tools that the provider runs in the middle of an answer, and whose finds the model reads.
bool IsProvidersTool(std::string_view type) {
  return type == "server_tool_use" || type == "mcp_tool_use" || type == "mcp_call" ||
         type == "code_interpreter_call" || type.ends_with("_search_call");
}

bool StartsWithIgnoringCase(std::string_view text, std::string_view prefix) {
  return codec::EqualIgnoringCase(text.substr(0, prefix.size()), prefix);
}

// Big-endian, as AWS's event stream has it.
uint32_t Number(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

UsageMeter::UsageMeter(ModelApi api, std::string_view content_type, int64_t output_max)
    : api_(api), output_max_(output_max) {
  form_ = Form::kDocument;
  if (StartsWithIgnoringCase(content_type, "text/event-stream")) form_ = Form::kEvents;
  if (StartsWithIgnoringCase(content_type, "application/vnd.amazon.eventstream")) {
    form_ = Form::kAwsEvents;
  }
}

// Takes the usage from where each API puts it: at the top, or in the message, the response or the
// metadata that an event carries.
void UsageMeter::TakeValue(const Json& value) {
  // Gemini streams as one array when it is not asked for events.
  if (const Json::Array* items = value.array()) {
    for (const Json& item : *items) TakeValue(item);
    return;
  }
  for (std::string_view name : {"delta", "choices", "candidates", "content", "output"}) {
    // Streams repeat in their last event what they said piece by piece.
    if (form_ != Form::kDocument && (name == "content" || name == "output")) continue;
    const Json* inner = value.Find(name);
    if (inner != nullptr) text_bytes_ += TextBytes(*inner, inner->string() != nullptr);
  }
  for (const char* name : {"content_block", "item"}) {
    const Json* inner = value.Find(name);
    usage_.searched |= inner != nullptr && IsProvidersTool(inner->StringAt("type"));
  }
  for (const char* name : {"model", "modelVersion"}) {
    if (usage_.model.empty()) usage_.model = value.StringAt(name);
  }
  // The beginning of an Anthropic stream, which only knows the input.
  if (const Json* message = value.Find("message"); message != nullptr) {
    if (usage_.model.empty()) usage_.model = message->StringAt("model");
    if (const Json* usage = message->Find("usage")) TakeUsage(api_, *usage, &usage_);
  }
  for (const char* name : {"response", "x_groq"}) {
    const Json* inner = value.Find(name);
    if (inner != nullptr && inner->object() != nullptr) TakeValue(*inner);
  }
  const Json* metrics = value.Find("amazon-bedrock-invocationMetrics");
  if (metrics != nullptr) {
    if (!usage_.found) Raise(&usage_.input, Count(*metrics, "inputTokenCount"));
    Raise(&usage_.output, Count(*metrics, "outputTokenCount"));
    usage_.found = true;
  }
  const Json* usage = value.Find(api_ == ModelApi::kGemini ? "usageMetadata" : "usage");
  if (usage != nullptr) TakeUsage(api_, *usage, &usage_);
  if (usage == nullptr) usage = metrics;
  if (usage == nullptr || !SaysOutput(*usage)) return;
  said_ = true;
  // Some APIs repeat the usage so far in every event: this one need not be the last.
  const Json* choices = value.Find("choices");
  const bool running =
      choices != nullptr && choices->array() != nullptr && !choices->array()->empty();
  const Json* delta = value.Find("delta");
  const Json* reason = delta != nullptr ? delta->Find("stop_reason") : nullptr;
  ended_ |= api_ != ModelApi::kGemini && !running && (reason == nullptr || !reason->is_null());
}

void UsageMeter::TakeDocument(std::string_view text) {
  codec::JsonBounds bounds;
  bounds.bytes_max = kUsageDocumentBytesMax;
  Result<Json> json = codec::ParseJson(text, bounds);
  if (!json.ok()) return;
  const Json* wrapped = json.value().Find("bytes");
  if (api_ == ModelApi::kBedrock && wrapped != nullptr && wrapped->string() != nullptr) {
    std::optional<std::string> event = codec::DecodeBase64(*wrapped->string());
    if (!event.has_value()) return;
    Result<Json> inner = codec::ParseJson(*event, bounds);
    if (inner.ok()) TakeValue(inner.value());
    return;
  }
  TakeValue(json.value());
}

void UsageMeter::TakeLine(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (line.substr(0, kData.size()) != kData) return;
  ++events_;
  line.remove_prefix(kData.size());
  if (ascii::Trimmed(line) == "[DONE]") {
    ended_ = true;
    return;
  }
  TakeDocument(line);
}

void UsageMeter::FeedLines(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    std::string_view piece = bytes.substr(0, end);
    if (pending_.size() + piece.size() > kUsageDocumentBytesMax) skipping_ = true;
    if (!skipping_) pending_.append(piece);
    if (skipping_) text_bytes_ += static_cast<int64_t>(piece.size());
    if (end == std::string_view::npos) return;
    if (!skipping_) TakeLine(pending_);
    pending_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
}

// Total length, length of the headers, checksum; headers, payload, checksum (AWS, "Event stream
// encoding"). The checksums are the client's to check.
void UsageMeter::TakeAwsMessages() {
  constexpr size_t kPrelude = 12;
  constexpr size_t kOverhead = kPrelude + 4;
  size_t at = 0;
  while (pending_.size() - at >= kPrelude) {
    size_t total = Number(pending_, at);
    size_t headers = Number(pending_, at + 4);
    if (total < kOverhead || total > kUsageDocumentBytesMax || headers > total - kOverhead) {
      skipping_ = true;
      break;
    }
    if (pending_.size() - at < total) break;
    std::string_view message = std::string_view(pending_).substr(at, total);
    ++events_;
    TakeDocument(message.substr(kPrelude + headers, total - kOverhead - headers));
    at += total;
  }
  pending_.erase(0, at);
}

void UsageMeter::Feed(std::string_view bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  if (form_ == Form::kEvents) return FeedLines(bytes);
  if (skipping_ || pending_.size() + bytes.size() > kUsageDocumentBytesMax) {
    skipping_ = true;
    pending_.clear();
    return;
  }
  pending_.append(bytes);
  if (form_ == Form::kAwsEvents) TakeAwsMessages();
}

TokenUsage UsageMeter::Finish(bool complete) {
  if (!skipping_ && form_ == Form::kEvents) TakeLine(pending_);
  if (!skipping_ && form_ == Form::kDocument) TakeDocument(pending_);
  pending_.clear();
  const bool whole = said_ && (complete || ended_ || form_ == Form::kDocument) &&
                     text_bytes_ <= usage_.output * kBytesPerTokenMax;
  if (!whole && (bytes_ > 0 || !complete)) {
    const bool stream = form_ == Form::kEvents || (form_ == Form::kAwsEvents && !skipping_);
    const int64_t text = (stream ? text_bytes_ : bytes_) / kBytesPerTokenGuess;
    usage_.estimated = true;
    // Thoughts may be in no byte of it: it may have used all that was allowed.
    usage_.output = std::max({usage_.output, output_max_, text, events_});
  }
  usage_.searched &= !whole;
  return std::move(usage_);
}

}  // namespace gateway
