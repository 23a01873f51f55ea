// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Writes two lower-case hexadecimal digits for each byte.
std::string EncodeHex(std::string_view bytes);

// Returns the bytes of lower-case digits; nullopt for anything else, also for upper case and an odd
// number.
std::optional<std::string> DecodeHex(std::string_view hex);

}  // namespace codec
