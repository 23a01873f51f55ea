// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace codec {

// Returns `text` with the letters of all scripts in their small form, as Python's str.lower() gives
// it: a capital sigma that ends a word becomes a final one, and a dotted capital I two characters.
// Bytes that are not UTF-8 stay as they are.
std::string LowerCase(std::string_view text);

// Returns whether LowerCase(text) has LowerCase(needle) in it. Takes no memory for the text.
bool ContainsInAnyCase(std::string_view text, std::string_view needle);

}  // namespace codec
