// SPDX-License-Identifier: Apache-2.0
// Public keys: parse them, and verify signatures with OpenSSL.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/openssl_owner.h"

namespace sigstore {

enum class Hash { kSha256, kSha384, kSha512 };

// Returns the raw digest.
std::string Digest(Hash hash, std::string_view bytes);

// A key that signatures are verified with: ECDSA over P-256, P-384 or P-521, RSA of 2048 bits or
// more (PKCS #1 v1.5), or Ed25519. No other kinds are supported.
class PublicKey {
 public:
  enum class Kind { kP256, kP384, kP521, kRsa, kEd25519 };

  // Each fails with `malformed` for a malformed key, and with kKeyAlgorithm for another kind.
  static Checked<PublicKey> FromSpki(std::string_view der, Reason malformed);
  static Checked<PublicKey> FromPkcs1(std::string_view der, Reason malformed);
  // Parses a `PUBLIC KEY` or `RSA PUBLIC KEY` (PKCS #1).
  static Checked<PublicKey> FromPem(std::string_view pem, Reason malformed);
  static Checked<PublicKey> FromCertificate(const X509* certificate);

  Kind kind() const { return kind_; }
  int bits() const { return ::EVP_PKEY_get_bits(key_.get()); }
  // Returns DER, as it was given if it was: making it anew costs as much as a signature.
  const std::string& spki() const { return spki_; }
  // Returns the 32 bytes of an Ed25519 key.
  std::string Raw() const;

  // Returns whether `signature` was made over `message` with this hash; `hash` is ignored for an
  // Ed25519 key, whose hash is fixed.
  bool Verifies(Hash hash, std::string_view message, std::string_view signature) const;
  // Returns the same where only the digest is known; never for Ed25519, which signs messages.
  bool VerifiesDigest(Hash hash, std::string_view digest, std::string_view signature) const;

 private:
  PublicKey(KeyOwner key, Kind kind, std::string spki)
      : key_(std::move(key)), kind_(kind), spki_(std::move(spki)) {}
  static Checked<PublicKey> CheckKind(KeyOwner key, Reason malformed, std::string spki);

  KeyOwner key_;
  Kind kind_;
  std::string spki_;
};

// Returns the hashes that signatures in bundles are made with: the curve's own, or SHA-256, with
// which clients signed before they chose by curve (bundles of every version: sigstore-go's
// "compatibility" verifier).
std::span<const Hash> HashesFor(PublicKey::Kind kind);

}  // namespace sigstore
