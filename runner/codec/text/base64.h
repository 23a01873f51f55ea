// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace codec {

// Base64 of RFC 4648, 4: with padding, without line ends. Decoding is strict: whole groups, padding
// at the end only. The decoded text may be a secret, which its owner wipes.
std::string EncodeBase64(std::string_view bytes);
std::optional<std::string> DecodeBase64(std::string_view text);

// RFC 4648, 5, without padding: as JSON web tokens have it.
std::string EncodeBase64Url(std::string_view bytes);
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace codec
