// SPDX-License-Identifier: Apache-2.0
// Access tokens that expire before a run ends: fetched when the first request needs one, and
// renewed shortly before they expire. This is the gateway's own traffic: no policy judges it (the
// operator named these services), and it is recorded as such.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/credential/credentials.h"
#include "gateway/credential/google_credentials.h"
#include "gateway/limits.h"
#include "gateway/services.h"

namespace gateway {

class TokenGrants {
 public:
  // `credentials` gets the tokens, and outlives this. `announce` sees each before that.
  TokenGrants(std::vector<TokenGrant> grants, Credentials& credentials,
              std::function<void(const Secret& token)> announce);

  // Sees to it that `credentials` has a token of `grant` (CredentialRefusal::grant). Callers that
  // ask while one is being fetched wait for it; after a failure, it is not tried again for
  // kTokenRetry. The error names the service and its code, never a value.
  Task<Status> Ensure(Services& services, int grant);

 private:
  struct Slot {
    TokenGrant grant;
    bool busy = false;
    Deadline fresh = Deadline::After({});
    Deadline failed_until = Deadline::After({});
    std::string failure = {};
  };

  Task<Result<AccessToken>> Fetch(Services& services, const TokenGrant& grant);

  std::vector<Slot> slots_;
  Credentials& credentials_;
  std::function<void(const Secret& token)> announce_;
};

}  // namespace gateway
