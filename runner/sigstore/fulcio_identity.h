// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/openssl_owner.h"
#include "sigstore/verify.h"

namespace sigstore {

// The holder of a certificate, as attested by a Sigstore certificate authority. OIDs below
// 1.3.6.1.4.1.57264.1, Fulcio's docs/oid-info.md.
struct FulcioIdentity {
  // URIs, e-mail addresses, DNS names, and otherName .7 (user names): the subject's names.
  std::vector<std::string> names;
  std::string issuer;                 // .8, or .1 in old certificates.
  std::map<int, std::string> claims;  // By the OID's last arc: .2 to .6 and .9 upwards.
};

// Fails with kBadCertificate for extensions that are malformed or there twice, and with
// kIssuerConflict when the two issuer extensions differ.
Checked<FulcioIdentity> ReadIdentity(const X509* certificate);

// Returns the name that the rule accepts. Fails with kIssuerMismatch, kIdentityMismatch or
// kClaimMismatch; the rejection carries what the certificate says.
Checked<std::string> MatchIdentity(const FulcioIdentity& identity, const IdentityRule& rule);

}  // namespace sigstore
