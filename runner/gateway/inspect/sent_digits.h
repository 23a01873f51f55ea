// SPDX-License-Identifier: Apache-2.0
// The digits in which a program may send a text or other bytes.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gateway {

// Text in the bytes that digits stand for.
struct DecodedText {
  std::string text;
  bool counts = false;  // Some of the digits are long rows of decimal ones, as where one counts.
};

// Returns the text in the bytes that runs of digits in `bytes` stand for: Base64 of either alphabet
// and hexadecimal, wherever they begin; hexadecimal without such rows as well.
std::vector<DecodedText> UndoDigits(std::string_view bytes);

// What dumps of xxd, od and hexdump and lists of numbers stand for, in hexadecimal, octal or
// decimal, in bytes or little-endian words.
struct Numbers {
  std::vector<std::string> texts;  // The text in each.
  bool hide = false;               // Over 72 bytes are in rows, and not text, whatever the base.
};
Numbers UndoNumbers(std::string_view bytes);

// Returns whether `bytes` has a run of Base64 or hexadecimal that stands for over 72 bytes which
// are not text, or characters that bytes may be mapped to: keys, signatures and what was compressed
// or encrypted. Shorter ones are digests.
bool HidesBytes(std::string_view bytes);

}  // namespace gateway
