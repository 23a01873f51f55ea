// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gateway {

// "host:port" of a request, made canonical: lower case, no trailing dot, an address literal without
// brackets and in its canonical form.
struct Authority {
  std::string host;
  uint16_t port = 0;
  friend bool operator==(const Authority&, const Authority&) = default;
};

// Parses "host:port", "host", "[v6]:port" or "[v6]". Without a port the default is taken; with none
// given, a port is required. Nothing but letters, digits, '-', '_' and '.' is a host name, at most
// 253 characters in labels of at most 63; user information is refused.
std::optional<Authority> ParseAuthority(std::string_view text,
                                        std::optional<uint16_t> default_port);

// Renders "host", or "host:port" when the port is not the scheme's default; v6 in brackets.
std::string RenderAuthority(const Authority& authority, uint16_t default_port);

// "http://authority/path?query" taken apart. The target is "/" when there is no path.
struct AbsoluteTarget {
  std::string scheme;  // Lower case.
  std::string authority;
  std::string path_and_query;
};
// Returns nullopt if the target is not of that form ("/path", "*").
std::optional<AbsoluteTarget> ParseAbsoluteTarget(std::string_view target);

}  // namespace gateway
