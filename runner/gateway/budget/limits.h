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
// More tokens than any answer has: a count above it is taken for it.
constexpr int64_t kTokensOfAnswerMax = int64_t{1} << 40;

}  // namespace gateway
