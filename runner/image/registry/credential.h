// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace image {

// A credential for a registry.
struct Credential {
  std::string username;
  Secret password;
  Secret identity_token;  // Exchanged by POST (RFC 6749, 6); instead of a password.
  std::string origin;     // The place where it was found, for people: "~/.docker/config.json".

  bool known() const { return !password.empty() || !identity_token.empty(); }
};

// The outcome of looking for a credential. A place that could not be read does not end the search:
// many images are public. It is reported when the registry refuses us.
struct CredentialSearch {
  Credential credential;  // Not known: anonymous.
  std::vector<std::string> complaints;
};

// Returns what to type or write so that there is a credential for `host`.
std::string CredentialHint(const std::string& host);

}  // namespace image
