// SPDX-License-Identifier: Apache-2.0
// Addresses of services, taken apart and put together by libcurl, so that what is judged here is
// what is dialled.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace net {

struct Url {
  std::string scheme;  // "https" or "http".
  std::string host;    // Lower case; an IPv6 address without its brackets.
  int port = 0;        // Never 0: the scheme's own when none is said.
  std::string text;    // The whole of it.

  // Returns whether both name the same service: host and port. (An http and an https service share
  // no port in practice; `scheme` is there for callers who care.)
  bool SameService(const Url& other) const { return host == other.host && port == other.port; }
};

// Fails with kInvalid unless it is an absolute http or https address without a user in it, on one
// line.
Result<Url> ParseUrl(const std::string& text);

// Resolves `reference` (a Location or Link header's) at `base`: RFC 3986, 5. Fails with kInvalid as
// above.
Result<Url> ResolveUrl(const Url& base, const std::string& reference);

// Returns the address without its query, for people: a presigned address's query is a credential.
// Control characters are blanks, and it is cut at 300 bytes.
std::string ShownUrl(std::string_view url);

// The ranges of addresses written as numbers, by what they are for.
enum class AddressKind {
  kName,       // Not an address: a name.
  kPublic,     // Anything else.
  kLoopback,   // 127.0.0.0/8, ::1, and the name "localhost".
  kLinkLocal,  // 169.254.0.0/16, fe80::/10: where clouds keep their metadata services.
  kPrivate,    // 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7.
  kUnusable,   // 0.0.0.0/8, ::, multicast, broadcast.
};

// Returns the kind of a host as in Url, in any spelling that a resolver takes for an address
// ("127.1", "0x7f.1", "::ffff:127.0.0.1").
AddressKind KindOf(const std::string& host);

}  // namespace net
