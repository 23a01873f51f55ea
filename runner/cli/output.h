// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string_view>

#include "base/sys.h"

namespace cli {

// What a command answers, to standard output. kIo: whoever reads it is gone, or the disk is full.
inline Status Print(std::string_view text) { return sys::WriteAll(STDOUT_FILENO, text); }

}  // namespace cli
