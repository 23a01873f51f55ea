// SPDX-License-Identifier: Apache-2.0
// X.509 certificates, as far as verification needs them. Chains: path.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/instant.h"
#include "sigstore/trust/openssl_owner.h"

namespace sigstore {

// Returns nullptr for anything but exactly one certificate with nothing after it.
CertificateOwner ParseCertificate(std::string_view der);

// The content of a PEM text: its label ("CERTIFICATE", "PUBLIC KEY") and its bytes.
struct PemBlock {
  std::string label;
  std::string der;
};
// Its first block, without headers. Nothing else.
std::optional<PemBlock> ParsePem(std::string_view pem);
std::string RenderPem(const PemBlock& block);

std::string DerOf(const X509* certificate);
// Returns the DER of its public key.
std::string SpkiOf(const X509* certificate);

bool IsSelfIssued(const X509* certificate);

// True if notBefore <= at <= notAfter. This is not OpenSSL's own check: OpenSSL considers a
// certificate expired at its notAfter; RFC 5280 does not.
bool ValidAt(const X509* certificate, const Instant& at);

// Returns whether its extended key usage (all of them, when it has none) permits `use`, a NID. Any
// usage permits it for authorities only.
bool Permits(const X509* certificate, int use, bool authority);

// A path: the leaf first, the anchor last.
using Chain = std::vector<CertificateOwner>;

}  // namespace sigstore
