// SPDX-License-Identifier: Apache-2.0
// What a client brings as its own credential, taken out before ours goes in: a request never
// carries two, and an agent cannot spend somebody else's key through an endpoint of the run's.
#pragma once

#include <string>

#include "gateway/credential/credentials.h"

namespace gateway {

// True when a header's value has a placeholder in it, plain or inside of Basic.
bool HoldsPlaceholder(const std::string& header_value);

// Removes the headers and query parameters that `placement` lists, except those with a placeholder
// in them. True when one of those stays: the client has said where its credential goes.
bool RemoveOwnCredentials(const AuthPlacement& placement, const CredentialSites& sites);

// Removes a signature of AWS Signature Version 4, wherever it is: headers or query.
void RemoveSignature(const CredentialSites& sites);

// The kind of the first credential ("github-token", "private-key") that stands in the path or the
// query; empty: none. A signed URL names its access key, and that name is no secret: it is let
// through. So are JSON web tokens, which release downloads carry.
std::string_view TokenInUrl(std::string_view path, std::string_view query);

}  // namespace gateway
