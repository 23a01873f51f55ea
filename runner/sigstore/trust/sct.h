// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/instant.h"
#include "sigstore/trust/openssl_owner.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// A certificate log's promise to have logged a certificate. RFC 6962, 3.2.
struct Sct {
  std::string log_id;
  uint64_t milliseconds = 0;  // Since 1970.
  std::string extensions;
  uint8_t hash = 0;       // TLS 1.2's numbers: 4 is SHA-256;
  uint8_t algorithm = 0;  // 1 is RSA, 3 is ECDSA.
  std::string signature;
};

// Reads a SignedCertificateTimestampList, at most 16 of them; those of another version than 1 are
// left out. Returns nullopt if its lengths do not fit.
std::optional<std::vector<Sct>> ParseSctList(std::string_view tls);

// Verifies that a known log says that it logged `leaf`, which the holder of `issuer`'s key made:
// one valid promise is enough. Fails with kSctMissing or kSctUnverified.
Check VerifyScts(const X509* leaf, const X509* issuer, const std::vector<TrustedLog>& logs);

}  // namespace sigstore
