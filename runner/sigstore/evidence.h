// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sigstore/log_entry.h"
#include "sigstore/signed_content.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/checked.h"
#include "sigstore/trust/trusted_root.h"
#include "sigstore/verify.h"

namespace sigstore {

// A signature and what is brought forward for it, from a bundle or from a layer's annotations:
// nothing of it is believed yet.
struct Evidence {
  CertificateOwner leaf;  // Nullptr for a key's signature.
  std::vector<LogEntry> entries;
  std::vector<std::string> timestamps;
  std::string stamped;    // The bytes that the timestamps are of.
  SignedContent content;  // `verifier` is set by Prove.
  // The real digests of an artifact that is signed; `content` has those that are claimed.
  std::string artifact[3];
  bool proof_required = true;  // If true, a log's promise alone is not enough.
};

// Verifies that the signature was made by a signer that `options` accepts, at a time when it could
// make it. `root` may be null, see VerifyBundle. The signed content is left for the caller to
// judge, except for an artifact's digest; so is `predicate_type`.
Checked<Verified> Prove(Evidence evidence, const VerifyOptions& options, const TrustedRoot* root);

}  // namespace sigstore
