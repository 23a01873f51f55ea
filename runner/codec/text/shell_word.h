// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace codec {

// Returns `text` as one word of a POSIX shell's command line (2.2.2, single quotes), whatever is in
// it but a zero byte.
std::string ShellWord(std::string_view text);

// Returns the same for a command that people read: quoted only where the shell would read it
// otherwise.
std::string ShellArgument(std::string_view text);

}  // namespace codec
