// SPDX-License-Identifier: Apache-2.0
// Credentials that a client sends itself, removed before the run's is inserted: a request never
// carries two, and an agent cannot use another party's key through one of the run's endpoints.
#pragma once

#include <string>

#include "gateway/credential/credentials.h"

namespace gateway {

// True if a header's value has a placeholder in it, plain or inside of Basic.
bool HoldsPlaceholder(const std::string& header_value);

// Removes the headers and query parameters that `placement` lists, except those with a placeholder
// in them. Returns true if one of those stays: the client has said where its credential goes.
bool RemoveOwnCredentials(const AuthPlacement& placement, const CredentialSites& sites);

// Removes a signature of AWS Signature Version 4, wherever it is: headers or query.
void RemoveSignature(const CredentialSites& sites);

// Returns the kind of the first credential ("github-token", "private-key") that stands in the path
// or the query; empty if there is none. Lets through the name of an access key in a signed URL,
// since it is not secret, and JSON web tokens, which release downloads carry.
std::string_view TokenInUrl(std::string_view path, std::string_view query);

}  // namespace gateway
