// SPDX-License-Identifier: Apache-2.0
// Request targets made canonical: the path that is judged is the path that is forwarded.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace codec {

// Canonicalises the path part of a request target (OpenShell's rules: at most 4096 bytes, decode
// then re-encode, `;params` stripped before dot segments, no climbing above the root, `//`
// collapsed, `%2F` refused unless allowed). Fails with kInvalid and the reason.
Result<std::string> CanonicalPath(std::string_view path, bool allow_encoded_slash);

// Decodes a query into key/value pairs: %XX and '+'. Fails on a bad escape or on invalid UTF-8.
Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query);

}  // namespace codec
