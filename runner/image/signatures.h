// SPDX-License-Identifier: Apache-2.0
// Every signature and attestation that a source has for a manifest: cosign's tags and OCI 1.1
// referrers, both, always. A place that could not be asked is an error of its own, never "none".
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "image/source.h"
#include "sigstore/verify.h"

namespace image {

struct Candidate {
  std::string where;  // "tag sha256-….sig, layer 0", "referrer sha256:…": for people.
  // What sigstore/ verifies: a bundle's JSON, or a legacy layer.
  std::variant<std::string, sigstore::LegacySignature> signature;
};

struct Lookup {
  std::vector<Candidate> candidates;
  std::vector<std::string> failures;  // "referrers API: 429 after 5 attempts".
};

// At most kCandidatesMax; what is beyond is a failure of its own. `attestations`: also `.att` tags.
Lookup FindSignatures(Source& source, const std::string& digest, bool attestations,
                      Deadline deadline);

inline constexpr size_t kCandidatesMax = 64;

}  // namespace image
