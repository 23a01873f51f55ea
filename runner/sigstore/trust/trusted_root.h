// SPDX-License-Identifier: Apache-2.0
// The parties that Sigstore signatures rest on: certificate authorities, transparency logs,
// timestamp authorities and certificate logs, each with the time in which it is trusted.
// sigstore_trustroot.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sigstore/trust/instant.h"

namespace sigstore {

// A log: of signatures (Rekor) or of certificates.
struct TrustedLog {
  std::string host;           // The host of its address, without port: a Rekor v2's name.
  std::string key_id;         // The id by which entries and SCTs name it: 32 raw bytes.
  std::string key;            // DER: SPKI, or
  bool key_is_pkcs1 = false;  // the bare RSAPublicKey.
  Interval valid_for;
};

// A certificate authority, or a timestamp authority.
struct TrustedAuthority {
  std::string uri;  // For messages.
  std::vector<std::string>
      certificates;  // DER, the anchor last; a timestamp's signer may be first.
  std::optional<Interval> valid_for;
  // Each certificate is known to be signed by the next: not to be verified for every signature.
  bool proved = false;
};

// One Sigstore: what is signed with the certificates of one is logged in its logs.
struct TrustedInstance {
  std::vector<TrustedLog> logs;
  std::vector<TrustedLog> certificate_logs;
  std::vector<TrustedAuthority> certificate_authorities;
  std::vector<TrustedAuthority> timestamp_authorities;
};

struct TrustedRoot {
  std::vector<TrustedInstance> instances;  // One signature satisfies one of them whole.
};

// Parses `trusted_root.json` (media types of v0.1 and v0.2), or several, one a line (JSONL, as
// GitHub gives them). Fails with kInvalid for anything malformed: a root that is only half
// understood is not used. The error begins with a Reason's code: "trust-root-validity: ...".
Result<TrustedRoot> ParseTrustedRoot(std::string_view json);

// Returns the public-good instance's, as it was when this program was built. Its authorities are
// proved, by a test that verifies each.
const TrustedRoot& EmbeddedTrustedRoot();

}  // namespace sigstore
