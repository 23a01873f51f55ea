// SPDX-License-Identifier: Apache-2.0
// Certificate chains, from a signing certificate to an anchor of the trusted root.
#pragma once

#include "sigstore/trust/certificate.h"
#include "sigstore/trust/checked.h"
#include "sigstore/trust/openssl_owner.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// An authority of the trusted root with its certificates read.
struct Authority {
  Chain certificates;   // Never empty; the anchor last.
  bool proved = false;  // See TrustedAuthority.
};

// Fails with kTrustRoot.
Checked<Authority> ReadAuthority(const TrustedAuthority& trusted);

// Returns false if by its names `leaf` is neither one of the authority's certificates nor issued by
// one, so that there is no path. Costs little, since no key is read.
bool MayHaveIssued(const TrustedAuthority& trusted, const X509* leaf);

// A path to be found.
struct Search {
  const Authority& authority;
  Chain path;  // Set once its signatures hold, even if something else is wrong with it.
};

// Makes the store that the library needs to find a path to the authority, by our rules: an anchor
// is one whether it is self-signed or not; the time is left to the caller; no key or hash is below
// 112 bits of security. `search` must outlive the store.
StoreOwner MakeStore(Search* search);

// Checks that the authorities between leaf and anchor may issue for `use`. Fails with kEku.
Check CheckAuthorities(const Chain& path, int use);

// Builds the path from `leaf` over some of the authority's certificates to its anchor. Everything
// but the time is checked: signatures, constraints, usages of the authorities. Fails with kChain or
// kEku.
Checked<Chain> BuildChain(X509* leaf, const Authority& authority, int use);

// Returns the first certificate of the path that was not valid at that time; nullptr if all were.
const X509* FirstInvalid(const Chain& path, const Instant& at);

}  // namespace sigstore
