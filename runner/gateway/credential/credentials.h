// SPDX-License-Identifier: Apache-2.0
// Replaces placeholders by secrets where they are bound; anywhere else, requests with placeholders
// are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "codec/data/secret_mask.h"
#include "codec/wire/http_head.h"
#include "gateway/credential/bound_secret.h"
#include "gateway/credential/placeholder.h"

namespace gateway {

// The destination of one request, with which a binding is compared.
struct CredentialTarget {
  std::string_view host;
  uint16_t port = 0;
  std::string_view path;      // Canonical, as the client wrote it.
  bool confidential = false;  // The request cannot be read between here and the host.
  bool signing = false;       // The policy's endpoint has it signed (`credential_signing`).
};

// The parts of one request that may hold placeholders, changed in place.
struct CredentialSites {
  codec::HttpFields* fields = nullptr;
  std::string* path = nullptr;   // Canonical.
  std::string* query = nullptr;  // Raw, without '?'.
};

struct CredentialRefusal {
  int status = 403;
  // "credential_endpoint_mismatch", "credential_unavailable", "credential_in_url".
  std::string error;
  std::string detail;  // Names the placeholder, never a value.
  // If it is not -1, nothing is refused yet: this grant's token must be fetched (token_grant.h) and
  // the request be judged again.
  int grant = -1;
};
CredentialRefusal CredentialUnavailable(std::string detail);

// The value of one name at one target.
struct ResolvedCredential {
  std::string_view value;  // Borrowed until the next SetToken; empty after a refusal.
  std::optional<CredentialRefusal> refusal;
};

class Credentials {
 public:
  explicit Credentials(std::vector<BoundSecret> secrets);

  // Puts secrets in where they are bound. First the client's own credentials are taken out, where a
  // provider's file says so, and the bound one is put in their place when no placeholder is in it.
  // A URL that still holds something in the form of a token is refused. Then placeholders are
  // recognised: as a whole header value, behind one scheme word, as the user or the password of
  // Basic, as a whole query value and inside a path segment; anywhere else in these parts they are
  // refused. On a refusal the sites may be half changed: drop the request.
  std::optional<CredentialRefusal> Apply(const CredentialTarget& target,
                                         const CredentialSites& sites) const;

  // Takes the client's own credentials out of `fields`, as Apply does. Nothing is put in: these
  // stand behind a body.
  void RemoveFromTrailers(const CredentialTarget& target, codec::HttpFields* fields) const;

  // Resolves `name` as it stands in a placeholder, with or without a revision.
  ResolvedCredential Resolve(const CredentialTarget& target, std::string_view name) const;

  // True if some secret is bound to this host and port, whatever the path.
  bool BoundTo(std::string_view host, uint16_t port) const;
  // True if a body on the way to `target` is to be searched for placeholders: there are secrets,
  // and no provider bound there says otherwise.
  bool SearchesBodies(const CredentialTarget& target) const;
  // Returns the service that requests to `target` are signed for because a provider says so; empty
  // if there is none.
  std::string_view SigningService(const CredentialTarget& target) const;

  // Sets the values of a grant, and until when they may be used.
  void SetToken(int grant, std::vector<Secret> values, Deadline until);
  // Sets another end for those that there are.
  void Prolong(int grant, Deadline until);
  // Returns the first value of a grant, borrowed until the next SetToken; empty without one.
  std::string_view TokenOf(int grant) const;
  // Returns the grant whose only value stands in one of `fields`; -1 without one. Values that sign
  // a request stand in none.
  int GrantIn(const codec::HttpFields& fields) const;

  // Returns `text` as a record may have it: placeholders, and the values of secrets in their usual
  // forms, are shown as [CREDENTIAL], and other tokens by their kind.
  std::string Redact(std::string_view text) const;
  // Returns every value, tokens that were fetched included.
  const codec::SecretMask& mask() const { return mask_; }

 private:
  class Attempt;
  struct Token {
    std::vector<Secret> values;
    Deadline until;
  };
  std::vector<BoundSecret> secrets_;
  std::vector<Token> tokens_;  // By grant.
  codec::SecretMask mask_;
};

}  // namespace gateway
