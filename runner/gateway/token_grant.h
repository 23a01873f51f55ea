// SPDX-License-Identifier: Apache-2.0
// Access tokens that expire before a run ends: fetched when the first request needs one, and
// renewed shortly before they expire. This is the gateway's own traffic: no policy judges it (the
// operator named these services), and it is recorded as such.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gateway/credential/credentials.h"
#include "gateway/credential/exchange.h"
#include "gateway/limits.h"
#include "gateway/services.h"

namespace gateway {

// Calls by which TokenGrants reaches the supervisor.
struct GrantHooks {
  std::function<void(const Secret& value)> announce;  // Each value, before it is used.
  std::function<void(const TakenIdentity&)> taken;    // Each exchange of an identity.
  // Asks for the content of the grant's `subject_file`, which comes by GiveSubject().
  std::function<void(size_t grant)> want_subject;
};

class TokenGrants {
 public:
  // `credentials` gets the tokens, and outlives this.
  TokenGrants(std::vector<TokenGrant> grants, Credentials& credentials, GrantHooks hooks);

  // Sees to it that `credentials` has a token of `grant` (CredentialRefusal::grant). Callers that
  // ask while one is being fetched wait for it; after a failure, nothing is fetched for
  // kTokenRetry, and a token that has not ended stays in use. The error names the service and its
  // code, never a value.
  Task<Status> Ensure(Services& services, int grant);
  // Fetches another token in place of one that a server has refused. `refused` is that one: if it
  // was replaced meanwhile, nothing is fetched.
  Task<Status> Replace(Services& services, int grant, std::string_view refused);
  // Fetches a token for each identity, so that a run begins only if all are taken. Fails with
  // kSetup for one that is refused, with kTemporary for a service that cannot be reached.
  Task<Status> EnsureIdentities(Services& services);
  // The content of the grant's file; empty if it cannot be read.
  void GiveSubject(size_t grant, std::string text);

 private:
  struct Slot {
    TokenGrant grant;
    bool busy = false;
    bool spent = false;  // The subject token in `grant.key` was sent.
    std::optional<SecretString> given = {};
    Deadline fresh = Deadline::After({});
    Deadline end = Deadline::After({});  // The token that there is may be used until then.
    Deadline failed_until = Deadline::After({});
    Error failure = {};
  };

  Task<Result<Secret>> FetchSubject(Services& services, size_t index);
  Task<Result<AccessToken>> Exchange(Services& services, Slot& slot, const Secret& subject);
  Task<Result<AccessToken>> Fetch(Services& services, size_t index);

  std::vector<Slot> slots_;
  Credentials& credentials_;
  GrantHooks hooks_;
};

}  // namespace gateway
