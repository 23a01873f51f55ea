// SPDX-License-Identifier: Apache-2.0
// Placeholders become secrets, for the bound host only; everywhere else they are refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http_head.h"
#include "gateway/gateway.h"

namespace gateway {

// The parts of one request that may hold placeholders, changed in place.
struct CredentialSites {
  codec::HttpFields* fields = nullptr;
  std::string* path = nullptr;   // Canonical.
  std::string* query = nullptr;  // Raw, without '?'.
};

struct CredentialRefusal {
  int status = 403;
  std::string error;   // "credential_endpoint_mismatch" or "credential_unavailable".
  std::string detail;  // Names the placeholder, never a value.
};

class Credentials {
 public:
  explicit Credentials(std::vector<BoundSecret> secrets) : secrets_(std::move(secrets)) {}

  // Puts secrets in where `host` is theirs. `confidential`: nobody between here and the host can
  // read the request. Placeholders are recognised as a whole header value, behind one scheme word,
  // as the user or the password of Basic, as a whole query value and inside a path segment;
  // anywhere else in these parts they are refused. On a refusal the sites may be half changed: drop
  // the request.
  std::optional<CredentialRefusal> Apply(std::string_view host, bool confidential,
                                         const CredentialSites& sites) const;

  // True when some secret is bound to `host`.
  bool BoundTo(std::string_view host) const;

 private:
  struct Attempt;
  std::vector<BoundSecret> secrets_;
};

// `text` with every placeholder in it shown as [CREDENTIAL]: for records.
std::string RedactPlaceholders(std::string_view text);

}  // namespace gateway
