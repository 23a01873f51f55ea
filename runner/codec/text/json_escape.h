// SPDX-License-Identifier: Apache-2.0
// The escapes of JSON's strings (RFC 8259, 7) in text that need not be JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace codec {

// An escape has at most so many bytes for each byte that it stands for.
inline constexpr size_t kJsonEscapeBytesMax = 6;

// Decodes escapes; anything else stays as it is.
std::string JsonUnescape(std::string_view text);

}  // namespace codec
