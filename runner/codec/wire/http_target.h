// SPDX-License-Identifier: Apache-2.0
// Request targets made canonical: the path that is judged is the path that is forwarded.
#pragma once

#include <cstdint>
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

// A URL or "host:port" taken apart, as people write them for `policy explain` and in tables.
struct RequestUrl {
  std::string scheme;  // "http", "https", or empty: a bare host:port, no request.
  std::string host;    // Lower case, without brackets.
  uint16_t port = 0;
  std::string target;  // Path and query as written; "/" when there is none.
};
Result<RequestUrl> ParseRequestUrl(std::string_view text);

// Parses the target of CONNECT: "host:port" or "[v6]:port". Port 0 parses. The host is as in
// RequestUrl.
Result<std::pair<std::string, uint16_t>> ParseAuthority(std::string_view text);

}  // namespace codec
