// SPDX-License-Identifier: Apache-2.0
// Signatures over an envelope: by a private key here, or by a program that asks a service for them.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/openssl_owner.h"
#include "base/result.h"
#include "sigstore/trust/public_key.h"

namespace attest {

// A signature, and by whom.
struct Signature {
  std::string bytes;             // As OpenSSL makes it; for ECDSA, DER.
  std::string certificate = {};  // DER; empty for a bare key.
  std::string spki;              // DER of the public key.
};

// Parses a private key that needs no password (PEM, `PRIVATE KEY`, `EC PRIVATE KEY`). Fails with
// kInvalid, and what to type, for anything else, and for a kind that sigstore::PublicKey does not
// verify.
Result<KeyOwner> ParsePrivateKey(std::string_view pem);

// Makes a key on P-256.
Result<KeyOwner> MakeKey();

// Returns the DER of its public half.
std::string SpkiOf(EVP_PKEY* key);

// Signs `message` with the hash that goes with the key's kind.
Result<std::string> Sign(EVP_PKEY* key, std::string_view message);

// Has `command` sign, a line for /bin/sh: `message` is on its standard input, and the base64 of its
// SHA-256 digest in the variable AGENTIC_CI_SHA256; it prints the signature, as bytes, in base64,
// as Vault does ("vault:v1:..."), or as the two numbers of a curve's one after the other. What it
// prints counts only if `public_key_pem` verifies it. Fails with kSetup.
Result<Signature> SignByCommand(const std::string& command, const std::string& public_key_pem,
                                std::string_view message, Deadline deadline);

}  // namespace attest
