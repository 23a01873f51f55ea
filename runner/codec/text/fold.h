// SPDX-License-Identifier: Apache-2.0
// Characters that a reader does not see, and those that some programs take for others.
#pragma once

#include <string>
#include <string_view>

namespace codec {

// True for Unicode's property Default_Ignorable_Code_Point: nothing is shown for the character.
// File systems that compare names by Unicode's case folding (ext4, HFS+) leave it out.
bool IsDefaultIgnorable(char32_t c);

// Returns `text` as those compare it who regard neither ASCII case nor what Unicode's full case
// folding takes for ASCII letters: U+017F is an `s`, U+212A a `k`, U+FB01 an `fi`. Other characters
// stay, and so do bytes that are not UTF-8.
std::string FoldToAscii(std::string_view text);

// Returns `text` as the least particular file system compares it: folded, and without the
// characters that HFS+ and ext4 leave out.
std::string FoldFileText(std::string_view text);
// Returns the same for a name (no `/`), without trailing dots and spaces, and what NTFS takes for a
// `:stream`.
std::string FoldFileName(std::string_view name);

}  // namespace codec
