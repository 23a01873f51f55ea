// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Two lower-case hexadecimal digits for each byte.
std::string EncodeHex(std::string_view bytes);

// The bytes of lower-case digits; nothing for anything else, upper case and an odd number too.
std::optional<std::string> DecodeHex(std::string_view hex);

}  // namespace codec
