// SPDX-License-Identifier: Apache-2.0
#include "gateway/budget/usage_meter.h"

#include <algorithm>

#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "gateway/budget/limits.h"

namespace gateway {
namespace {

using codec::Json;

// A count of an answer: no sum of a few of them overflows, and none is negative.
int64_t Count(const Json& usage, const char* name) {
  return std::clamp<int64_t>(usage.IntegerAt(name), 0, kTokensOfAnswerMax);
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

// Both of OpenAI's APIs: the cached tokens are part of the input. Each report is a whole one.
void TakeOpenAi(const Json& usage, const char* input, const char* output, const char* details,
                TokenUsage* total) {
  const Json* detail = usage.Find(details);
  total->cache_read = detail != nullptr ? Count(*detail, "cached_tokens") : 0;
  total->input = std::max<int64_t>(Count(usage, input) - total->cache_read, 0);
  total->output = Count(usage, output);
}

void TakeGemini(const Json& usage, TokenUsage* total) {
  total->cache_read = Count(usage, "cachedContentTokenCount");
  int64_t input = Count(usage, "promptTokenCount") + Count(usage, "toolUsePromptTokenCount");
  total->input = std::max<int64_t>(input - total->cache_read, 0);
  total->output = Count(usage, "candidatesTokenCount") + Count(usage, "thoughtsTokenCount");
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

// Takes the usage from where each API puts it: at the top, or in the message, the response or the
// metadata that an event carries.
void TakeValue(ModelApi api, const Json& value, TokenUsage* total) {
  // Gemini streams as one array when it is not asked for events.
  if (const Json::Array* items = value.array()) {
    for (const Json& item : *items) TakeValue(api, item, total);
    return;
  }
  for (const char* name : {"message", "response"}) {
    if (const Json* inner = value.Find(name); inner != nullptr && inner->object() != nullptr) {
      TakeValue(api, *inner, total);
    }
  }
  for (const char* name : {"model", "modelVersion"}) {
    if (total->model.empty()) total->model = value.StringAt(name);
  }
  for (const char* name : {"usage", "usageMetadata"}) {
    if (const Json* usage = value.Find(name)) TakeUsage(api, *usage, total);
  }
  const Json* metrics = value.Find("amazon-bedrock-invocationMetrics");
  if (metrics != nullptr && !total->found) {
    total->found = true;
    Raise(&total->input, Count(*metrics, "inputTokenCount"));
    Raise(&total->output, Count(*metrics, "outputTokenCount"));
  }
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

UsageMeter::UsageMeter(ModelApi api, std::string_view content_type) : api_(api) {
  form_ = Form::kDocument;
  if (StartsWithIgnoringCase(content_type, "text/event-stream")) form_ = Form::kEvents;
  if (StartsWithIgnoringCase(content_type, "application/vnd.amazon.eventstream")) {
    form_ = Form::kAwsEvents;
  }
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
    if (inner.ok()) TakeValue(api_, inner.value(), &usage_);
    return;
  }
  TakeValue(api_, json.value(), &usage_);
}

void UsageMeter::TakeLine(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (line.substr(0, kData.size()) != kData) return;
  ++events_;
  // Most events are pieces of text: not worth parsing.
  if (line.find("\"usage") == std::string_view::npos &&
      line.find("\"model\"") == std::string_view::npos) {
    return;
  }
  TakeDocument(line.substr(kData.size()));
}

void UsageMeter::FeedLines(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    std::string_view piece = bytes.substr(0, end);
    if (pending_.size() + piece.size() > kUsageDocumentBytesMax) skipping_ = true;
    if (!skipping_) pending_.append(piece);
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
  bool stream = form_ == Form::kEvents || (form_ == Form::kAwsEvents && !skipping_);
  // Text of a document has about four bytes a token.
  int64_t guess = stream ? events_ : bytes_ / kBytesPerTokenGuess;
  bool said_nothing = !usage_.found && (bytes_ > 0 || !complete);
  bool said_too_little = usage_.found && !complete && guess > usage_.output;
  if (said_nothing || said_too_little) {
    usage_.estimated = true;
    usage_.output = guess;
  }
  return std::move(usage_);
}

}  // namespace gateway
