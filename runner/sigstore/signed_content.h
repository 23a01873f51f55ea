// SPDX-License-Identifier: Apache-2.0
// What was signed, in one form for all formats of bundles: for the comparison with the log and
// with the key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sigstore/trust/certificate.h"
#include "sigstore/trust/public_key.h"

namespace sigstore {

// The maker of a signature, as logs know it.
struct Verifier {
  PemBlock pem;  // "CERTIFICATE" or "PUBLIC KEY".
  PublicKey::Kind kind = PublicKey::Kind::kP256;
  int bits = 0;
};

// One signature, and over what, in whichever form it came: what is compared with the log's entry
// and verified with the key. All binary values are raw.
struct SignedContent {
  std::string signature;
  // The signed bytes: an envelope's pre-authentication encoding, a legacy payload. nullopt if only
  // digests are known, as of an artifact.
  std::optional<std::string> message;
  // Otherwise the digests by SHA-256, SHA-384 and SHA-512; empty if unknown.
  std::string digests[3];
  // The payload of an envelope, and its own JSON if that is what was stored.
  std::optional<std::string> payload;
  std::string envelope_json;
  Verifier verifier;

  // Returns the digest of the signed bytes; empty if it is unknown.
  std::string DigestBy(Hash hash) const {
    return message ? Digest(hash, *message) : digests[static_cast<size_t>(hash)];
  }
};

// Returns DSSE's pre-authentication encoding, over which an envelope's signature is made.
std::string PreAuthenticationEncoding(std::string_view type, std::string_view payload);

}  // namespace sigstore
