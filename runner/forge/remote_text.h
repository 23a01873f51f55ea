// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forge {

// Text from a stranger or a remote service as it may stand in an error or a log line: control
// characters and bytes beyond ASCII become '?', and what is longer than `bytes_max` ends in "...".
std::string Harmless(std::string_view text, size_t bytes_max = 200);

}  // namespace forge
