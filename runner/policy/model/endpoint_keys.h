// SPDX-License-Identifier: Apache-2.0
// The keys of an endpoint that are a switch: the one table of what they are called and where they
// apply. Files are read, endpoints compared, and policies shown and exported by its
// rows; only what a key does to a request is written elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "policy/model/policy.h"

namespace policy {

struct EndpointKey {
  std::string_view name;
  bool Endpoint::*member;  // False if the key is absent.
  // The endpoints that may have it, what a hint proposes first; empty for all of them. `access`
  // without a protocol counts as kRest.
  std::span<const Protocol> protocols;
  std::string_view doc;  // One sentence or more.
};

inline constexpr auto kAnyButTcp = std::to_array<Protocol>(
    {Protocol::kL4, Protocol::kRest, Protocol::kWebSocket, Protocol::kGraphql, Protocol::kSql,
     Protocol::kJsonRpc, Protocol::kMcp});
inline constexpr auto kWebSocketOnly = std::to_array<Protocol>({Protocol::kWebSocket});
inline constexpr auto kRestOnly = std::to_array<Protocol>({Protocol::kRest});

inline constexpr auto kEndpointKeys = std::to_array<EndpointKey>({
    {"allow_encoded_slash", &Endpoint::allow_encoded_slash, kAnyButTcp,
     "Keep `%2F` in paths instead of refusing the request."},
    {"websocket_credential_rewrite", &Endpoint::websocket_credential_rewrite, kWebSocketOnly,
     "Replace placeholders of credentials in WebSocket text. Needs `websocket`."},
    {"request_body_credential_rewrite", &Endpoint::request_body_credential_rewrite, kRestOnly,
     "Replace placeholders of credentials in request bodies. Needs `rest`."},
    {"allow_uninspected_credentials",
     &Endpoint::allow_uninspected_credentials,
     {},
     "Allow uninspected connections to a host that a credential is bound to; the credential is "
     "then never inserted."},
});

// Returns whether an endpoint of `protocol` may have the key.
constexpr bool MayHave(Protocol protocol, const EndpointKey& key) {
  return key.protocols.empty() ||
         std::find(key.protocols.begin(), key.protocols.end(), protocol) != key.protocols.end();
}

}  // namespace policy
