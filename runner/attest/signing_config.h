// SPDX-License-Identifier: Apache-2.0
// The services of a Sigstore instance that signatures are made with: SigningConfig v0.2 of
// sigstore_trustroot.proto.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sigstore/trust/instant.h"

namespace attest {

struct Service {
  std::string url;
  int version = 0;  // Of its interface.
};

// Those that are to be used at one time.
struct SigningServices {
  std::string certificate_authority;  // The base of Fulcio's address; empty if there is none.
  std::vector<Service> logs;          // Rekor 1 or 2, bases of addresses.
  std::vector<std::string> timestamp_authorities;  // Whole addresses.
};

// Chooses the services of `json`, a SigningConfig v0.2, or a ClientTrustConfig that has one, at
// `now`: the highest version that is known here, of these the newest, one for each operator; as
// many as the configuration's selectors say. Fails with kInvalid for anything else, and where a
// selector asks for more than there are.
Result<SigningServices> ChooseServices(std::string_view json, const sigstore::Instant& now);

// Returns the configuration of the public instance, as policies/signing_config.json has it.
std::string_view PublicSigningConfig();

}  // namespace attest
