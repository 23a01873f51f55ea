// SPDX-License-Identifier: Apache-2.0
// X.509 certificates: what verifying asks of one. Paths of them: path.h.
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

}  // namespace sigstore
