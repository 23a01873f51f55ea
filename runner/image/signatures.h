// SPDX-License-Identifier: Apache-2.0
// Every signature and attestation that a source has for a manifest: cosign's tags and OCI 1.1
// referrers, both, always. A place that could not be queried is a separate error, never "none".
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "image/source/source.h"
#include "sigstore/verify.h"

namespace image {

struct Candidate {
  std::string where;  // "tag sha256-….sig, layer 0", "referrer sha256:…": for people.
  // The signature that sigstore/ verifies: a bundle's JSON, or a legacy layer.
  std::variant<std::string, sigstore::LegacySignature> signature;
};

struct Lookup {
  std::vector<Candidate> candidates;
  std::vector<std::string> failures;  // "tag sha256-….sig: …: 429, too many requests".
};

// Finds at most kCandidatesMax signatures; more are a failure of its own. With `attestations`, also
// looks at `.att` tags. Referrers are judged by their manifests alone: the lists that cosign and
// GHCR write say nothing reliable about them. Listed manifests that are not there are skipped.
// Other repositories that hold signatures of this image (as COSIGN_REPOSITORY names them) are
// sources like this one.
Lookup FindSignatures(Source& source, const std::string& digest, bool attestations,
                      Deadline deadline);

inline constexpr size_t kCandidatesMax = 64;
// The bound on all candidates of one lookup; a bundle may hold an attestation of many packages.
inline constexpr size_t kSignatureBytesMax = 64 << 20;

}  // namespace image
