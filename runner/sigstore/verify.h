// SPDX-License-Identifier: Apache-2.0
// Verifies that a signature over a digest was made by an accepted signer, at a time when it could
// make it, and was logged. Pure: bytes in, a verdict out; no network, no clock, no file. Rules:
// Sigstore's client specification, sigstore-go and cosign where they differ from it; each is named
// where it is enforced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "sigstore/trust/reason.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// A public key that is accepted (PEM, `PUBLIC KEY` or `RSA PUBLIC KEY`).
struct KeyRule {
  std::string pem;
  // The signature must be in a transparency log of the trusted root. Off by default: a team's own
  // key needs no log, and no trusted root then.
  bool require_log = false;
};

// Fails with kInvalid, and what to type, for a text that is not a verification key; called before
// any network request.
Status CheckKey(std::string_view pem);

// A person or workflow that is accepted; the key that it held for ten minutes does not matter.
struct IdentityRule {
  std::string issuer;    // Exact.
  std::string identity;  // The certificate's subject alternative name; a glob, whole and anchored.
  // Further claims of Fulcio's that must hold, by the last arc of their OID: {12, "https://..."}.
  std::vector<std::pair<int, std::string>> claims;
};

using SignerRule = std::variant<KeyRule, IdentityRule>;

struct VerifyOptions {
  SignerRule signer;
  // Statement types that count as a signature, beside cosign's own
  // `https://sigstore.dev/cosign/sign/v1`.
  std::vector<std::string> predicate_types;
  // Any statement type counts (`verify-bundle`, where the artifact is a file).
  bool any_predicate = false;
  // With identities, whether a log and a timestamp must vouch. GitHub's private instance has no
  // log.
  bool require_log = true;
  bool require_timestamp = false;  // A timestamp of RFC 3161, beyond a log's time.
};

// The facts that were proved, for the record.
struct Verified {
  std::string signer;          // The certificate's identity, or "key sha256:<of its SPKI>".
  std::string issuer;          // Empty for keys.
  std::string predicate_type;  // Empty for a signature over the bytes themselves, or a legacy one.
  std::vector<int64_t> log_indices;
  std::vector<int64_t>
      times;  // Unix seconds; every time at which the certificate was proved valid.
};

// Verified, or why not.
using Verdict = std::variant<Verified, Rejection>;

// The signed artifact, by its digests in lower-case hexadecimal; those that are not known are
// empty. SHA-256 always is known, and is all that anything but a signature over a file by a P-384
// or P-521 key needs.
struct Artifact {
  std::string sha256;
  std::string sha384 = {};
  std::string sha512 = {};
};

// Verifies that `bundle` (JSON of sigstore_bundle.proto, v0.1 to v0.3) signs the artifact whose
// SHA-256 is `digest_hex` (64 lower-case digits). `root` may be null: then only keys without logs
// verify.
Verdict VerifyBundle(std::string_view bundle, std::string_view digest_hex,
                     const VerifyOptions& options, const TrustedRoot* root);
Verdict VerifyBundle(std::string_view bundle, const Artifact& artifact,
                     const VerifyOptions& options, const TrustedRoot* root);

// One layer of a `sha256-<hex>.sig` manifest: cosign's format before bundles.
struct LegacySignature {
  std::string payload;  // The blob, as stored.
  // The layer's descriptor has these; absent ones are empty.
  std::string signature;    // dev.cosignproject.cosign/signature
  std::string certificate;  // dev.sigstore.cosign/certificate
  std::string chain;        // dev.sigstore.cosign/chain
  std::string bundle;       // dev.sigstore.cosign/bundle
  std::string timestamp;    // dev.sigstore.cosign/rfc3161timestamp
};

// Verifies that `signature` says that the image manifest `digest_hex` was signed. A payload that is
// a DSSE envelope (`.att`) is verified as an attestation.
Verdict VerifyLegacy(const LegacySignature& signature, std::string_view digest_hex,
                     const VerifyOptions& options, const TrustedRoot* root);

}  // namespace sigstore
