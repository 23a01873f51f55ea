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

// True for lower-case digits, at least one.
bool IsHex(std::string_view text);

// True for git's name of an object, whole: a SHA-1 or SHA-256 in lower case.
bool IsObjectId(std::string_view text);

}  // namespace codec
