// SPDX-License-Identifier: Apache-2.0
// X.509 certificates: what verifying asks of one, and of a path of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/checked.h"
#include "sigstore/instant.h"
#include "sigstore/openssl_owner.h"

namespace sigstore {

// Nullptr for anything but one certificate, without a byte behind it.
CertificateOwner ParseCertificate(std::string_view der);

// What a PEM text holds: its label ("CERTIFICATE", "PUBLIC KEY") and its bytes.
struct PemBlock {
  std::string label;
  std::string der;
};
// Its first block, without headers. Nothing else.
std::optional<PemBlock> ParsePem(std::string_view pem);

std::string DerOf(const X509* certificate);
// DER of its public key.
std::string SpkiOf(const X509* certificate);

bool IsSelfIssued(const X509* certificate);

// notBefore <= at <= notAfter. Not OpenSSL's own check: to that a certificate has expired at its
// notAfter, to RFC 5280 and to whoever made it, not yet.
bool ValidAt(const X509* certificate, const Instant& at);

// Whether its extended key usage (all of them, when it has none) permits `use`, a NID. Any usage
// permits it for authorities only.
bool Permits(const X509* certificate, int use, bool authority);

// A path: the leaf first, the anchor last.
using Chain = std::vector<CertificateOwner>;

// How paths are judged: any certificate given as an anchor is one, self-signed or not; the time is
// left to the caller; no key or hash below 112 bits of security.
void SetRules(X509_VERIFY_PARAM* rules);

// The path that a verification found.
Chain PathOf(X509_STORE_CTX* context);

// Whether the authorities between leaf and anchor may issue for `use`. Fails with kEku.
Check CheckAuthorities(const Chain& chain, int use);

// The path from `leaf` over some of `intermediates` to `anchor`. Everything but the time is
// checked: signatures, constraints, usages of the authorities. Fails with kChain or kEku.
Checked<Chain> BuildChain(X509* leaf, const Chain& intermediates, X509* anchor, int use);

// The first certificate of the path that was not valid at that time; nullptr when all were.
const X509* FirstInvalid(const Chain& chain, const Instant& at);

}  // namespace sigstore
