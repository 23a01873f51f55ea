// SPDX-License-Identifier: Apache-2.0
// Bounds on what is parsed for counting usage.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gateway {

// Budgets. A model's answer, or one event of it, that is looked into for what it used; and the
// largest request whose body is read for the model it names (Anthropic takes 32 MB).
constexpr size_t kUsageDocumentBytesMax = size_t{8} << 20;
constexpr size_t kModelRequestBytesMax = size_t{32} << 20;
constexpr int64_t kBytesPerTokenGuess = 4;
// A question whose input is not said: single digits and letters between blanks are a token each.
constexpr int64_t kBytesPerTokenLeast = 2;
// Text of an answer has fewer bytes a token than that, unless it is of blanks: a count that says
// otherwise is taken for none.
constexpr int64_t kBytesPerTokenMax = 16;
// The output tokens that a request allows if it sets no bound: no known model gives more.
constexpr int64_t kOutputTokensUnsaid = 128'000;
// Input that a request only refers to, or that the provider's own tools found: as much as any model
// reads.
constexpr int64_t kInputTokensUnseen = 1'000'000;
// Likewise, a picture in a question: more than any known model makes of one.
constexpr int64_t kInputTokensOfPicture = 5'000;
// Answers to one question, where its number cannot be read (OpenAI gives at most as many).
constexpr int64_t kChoicesMax = 128;
// More tokens than any answer has: a count above it is taken for it.
constexpr int64_t kTokensOfAnswerMax = int64_t{1} << 40;

}  // namespace gateway
