// SPDX-License-Identifier: Apache-2.0
// Credentials as the supervisor passes them to the gateway: a value, and the only destinations it
// may be sent to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
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
  // Added to the client's own, by a comma: {"anthropic-beta", "oauth-2025-04-20"}.
  std::vector<std::pair<std::string, std::string>> added_headers = {};
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
  int grant = -1;   // Index into GatewayConfig::grants; -1 if `value` is it.
  size_t part = 0;  // Which of the values that the grant gives.
  // A body is not searched for placeholders on the way to here: a model is told what its agent saw,
  // which may well be the environment.
  bool bodies_pass = false;
};

// One request of an exchange. In the texts of `fields` and `headers`, ${subject} is the token that
// is exchanged, and ${token} the result of the step before.
struct ExchangeStep {
  struct Field {
    std::string name;
    std::vector<std::string> values;
    bool list = false;  // In JSON; otherwise there is one value.
  };
  std::string url;    // https.
  bool json = false;  // The body is a JSON object; otherwise a form.
  std::vector<Field> fields;
  std::vector<std::pair<std::string, std::string>> headers;
};

// One way to an access token that does not live as long as a run: of Google's credential files
// (google_credentials.h), or of a job's identity (provider_identity.h). Everything in it was read
// by the supervisor.
struct TokenGrant {
  enum class Kind {
    kServiceAccount,  // RFC 7523: a JWT signed with `key`.
    kRefreshToken,    // RFC 6749, 6: `key` is the refresh token.
    kExchange,        // A subject token goes through `steps`.
  };
  Kind kind = Kind::kServiceAccount;
  std::string token_url;  // https.
  std::string identity;   // The account's e-mail address, or the client's id.
  std::string key_id;     // kServiceAccount: may be empty.
  Secret key;             // PEM; refresh token; subject token.
  Secret client_secret;   // kRefreshToken.
  std::string scope;
  // The members for kExchange. The subject token is `key`, or comes from `subject_url`, which is
  // asked whenever one is needed (https); or from a file that the supervisor reads again.
  std::string subject_url = {};
  Secret subject_auth = {};        // The value of the Authorization header there; may be empty.
  std::string subject_field = {};  // JSON member of the answer that has it; else the whole answer.
  std::string subject_file = {};
  bool once = false;  // The service takes each subject token once.
  std::vector<ExchangeStep> steps = {};
  bool gives_aws = false;     // The last step gives the three values of a session of AWS.
  std::string provider = {};  // The identity's; empty for Google's files.
};

// Returns "openshell:resolve:env:NAME": what the sandbox's environment holds instead of the secret.
std::string PlaceholderFor(std::string_view name);

}  // namespace gateway
