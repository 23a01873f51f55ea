// SPDX-License-Identifier: Apache-2.0
// Tokens, counted from a model's own answer as it passes through: whole or streamed, whichever way
// the API streams. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/data/json.h"
#include "gateway/budget/model_api.h"

namespace gateway {

struct TokenUsage {
  std::string model;   // The model that the answer names; empty if it names none.
  int64_t input = 0;   // Input tokens, without those that came from a cache or went into one.
  int64_t output = 0;  // Output tokens, with those of the model's thoughts.
  int64_t cache_read = 0;
  int64_t cache_write = 0;
  bool found = false;      // The answer said something of what it used.
  bool estimated = false;  // `output` is a guess from how much the answer said, or might have.
  bool searched = false;   // The answer does not say how much input the provider's tools found.

  int64_t total() const { return input + output + cache_read + cache_write; }
};

// Counts the tokens of one answer. Everything that it keeps is bounded: a line or a document of an
// answer over kUsageDocumentBytesMax is not looked into.
class UsageMeter {
 public:
  // `content_type` as the answer has it: an event stream, AWS's event stream, or one document.
  // `output_max`: as in PromptBody; what an answer is taken to have used that does not say it.
  UsageMeter(ModelApi api, std::string_view content_type, int64_t output_max);

  // Takes the next bytes of the body, without transfer coding.
  void Feed(std::string_view bytes);
  // Ends the body and returns what was used. If not `complete`, the answer was cut off: what a
  // stream had counted by then is not the whole, except in its last event.
  TokenUsage Finish(bool complete);

 private:
  enum class Form { kDocument, kEvents, kAwsEvents };

  void FeedLines(std::string_view bytes);
  void TakeLine(std::string_view line);
  void TakeAwsMessages();
  void TakeDocument(std::string_view text);
  void TakeValue(const codec::Json& value);

  ModelApi api_;
  Form form_;
  std::string pending_;
  bool skipping_ = false;
  int64_t output_max_;
  int64_t events_ = 0;  // The events of a stream; each carries about a token.
  int64_t bytes_ = 0;
  int64_t text_bytes_ = 0;  // Of the text that the model wrote, as far as it can be told.
  bool said_ = false;       // The answer said its output, so far at least.
  bool ended_ = false;      // It did in its last event.
  TokenUsage usage_;
};

}  // namespace gateway
