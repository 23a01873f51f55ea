// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace codec {

struct Utf8Character {
  char32_t value = 0xfffd;
  size_t bytes = 1;  // At least 1: also what is not UTF-8 is stepped over.
  bool valid = false;
};

// Returns the first character of `text`, which is not empty. Strict (RFC 3629): no overlong forms,
// no surrogates, nothing above U+10FFFF. A piece that is not UTF-8 is as long as its longest prefix
// that could have begun a character (Unicode 15, 3.9, "maximal subpart").
Utf8Character NextUtf8(std::string_view text);

// Appends the UTF-8 of `value`, which is not a surrogate and at most U+10FFFF.
void AppendUtf8(char32_t value, std::string* out);

// Returns where the first byte that is not part of valid UTF-8 stands; std::string_view::npos if
// all are.
size_t FindInvalidUtf8(std::string_view text);

}  // namespace codec
