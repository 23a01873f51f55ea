// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace policy {

// The bytes of strangers' texts that are looked for; a fingerprint of them takes up to five times
// as much.
inline constexpr size_t kUntrustedBytesMax = size_t{4} << 20;

// A text of which is known before a run that a stranger may have written it.
struct UntrustedText {
  std::string
      name;  // As records have it: "the text", "src/a.cc, as the pull request has it".
  std::string text;
};

struct UntrustedTexts {
  std::vector<UntrustedText> texts;
  // False if there is more that could not be read: every request to the model may have a piece.
  bool complete = true;
};

}  // namespace policy
