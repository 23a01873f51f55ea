// SPDX-License-Identifier: Apache-2.0
// Percent encoding (RFC 3986, 2.1) of whole values.
#pragma once

#include <string>
#include <string_view>

namespace codec {

// Turns every byte that is not unreserved (letters, digits, "-._~") into %XX, upper case.
std::string PercentEncode(std::string_view bytes);
// Encodes each part of a path, and leaves the slashes between them.
std::string PercentEncodePath(std::string_view path);

// Decodes escapes; anything else stays as it is.
std::string PercentDecode(std::string_view text);
// Returns the same for a key or a value of a form or a query: '+' becomes a space.
std::string FormDecode(std::string_view text);

}  // namespace codec
