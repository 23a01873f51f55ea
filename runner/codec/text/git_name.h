// SPDX-License-Identifier: Apache-2.0
// Names of files as git writes them in a difference: quoted where they have unusual bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Returns the name that the whole of `text` writes, C-quoted ("a\303\274\n", git's core.quotePath
// form) or not; nullopt if the quotes are not in order.
std::optional<std::string> UnquoteGitName(std::string_view text);

// Returns the name in "a/NAME b/NAME", the end of a line "diff --git ", if both are the same, as
// git does: otherwise a space in a name could be read in two ways, and other lines have the names.
std::optional<std::string> NameOfDiff(std::string_view text);

}  // namespace codec
