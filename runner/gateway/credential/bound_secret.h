// SPDX-License-Identifier: Apache-2.0
// Credentials as the supervisor passes them to the gateway: a value, and the only destinations it
// may be sent to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"

namespace gateway {

// The place of a provider's credential in a request, whatever the client put there (a provider's
// file says it: gateway/credential/provider.h). Without it, a credential goes only where a
// placeholder stands.
struct AuthPlacement {
  std::string header;  // Lower case, "x-api-key"; empty if placeholders alone decide.
  std::string scheme;  // "Bearer", "Basic"; if empty, the bare value.
  std::string user;    // The user of Basic, whose password is the value.
  // The client's own are taken out of the request: header names in lower case, names in the query.
  std::vector<std::string> replaced_headers;
  std::vector<std::string> replaced_query;
  // AWS Signature Version 4 with the three AWS_* secrets bound here, for this service (sigv4.h).
  std::string signing_service;
};

// A value that the sandbox never sees: programs in it hold PlaceholderFor(name), and the gateway
// puts `value` in its place in inspected requests to where it is bound, over TLS (or to a host
// alias) only.
struct BoundSecret {
  std::string name;  // The name in the sandbox's environment: [A-Za-z_][A-Za-z0-9_]*.
  // A host in lower case; a pattern iff it contains '*' (policy/model/host_pattern.h).
  std::string host;
  Secret value;       // The value; empty if `grant` says that it is fetched.
  uint16_t port = 0;  // 0 for every port.
  // codec::PathSelectorMatches over the canonical path; empty for every path.
  std::string path = {};
  AuthPlacement placement = {};
  int grant = -1;  // Index into GatewayConfig::grants; -1 if `value` is it.
  // A body is not searched for placeholders on the way to here: a model is told what its agent saw,
  // which may well be the environment.
  bool bodies_pass = false;
};

// One way to an access token that does not live as long as a run: Google's credential files
// (google_credentials.h makes these from one). Everything in it was read by the supervisor.
struct TokenGrant {
  enum class Kind {
    kServiceAccount,  // RFC 7523: a JWT signed with `key`.
    kRefreshToken,    // RFC 6749, 6: `key` is the refresh token.
    kExchange,        // RFC 8693: a subject token, from `subject_url` or in `key`.
  };
  Kind kind = Kind::kServiceAccount;
  std::string token_url;  // https.
  std::string identity;   // The account's e-mail address, or the client's id.
  std::string key_id;     // kServiceAccount: may be empty.
  Secret key;             // PEM; refresh token; subject token.
  Secret client_secret;   // kRefreshToken.
  std::string scope;
  // The members for kExchange.
  std::string audience;
  std::string subject_type;
  std::string subject_url;    // Asked for a subject token whenever one is needed; https.
  Secret subject_auth;        // The value of the Authorization header there; may be empty.
  std::string subject_field;  // JSON member of the answer that has it; if empty, the whole answer.
  std::string
      impersonation_url;  // Not empty: the token is exchanged once more, for this account's.
};

// Returns "openshell:resolve:env:NAME": what the sandbox's environment holds instead of the secret.
std::string PlaceholderFor(std::string_view name);

}  // namespace gateway
