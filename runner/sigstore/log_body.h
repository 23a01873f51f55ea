// SPDX-License-Identifier: Apache-2.0
// The content of a log entry. It counts only if it has exactly the signature, key and content that
// the bundle is about: CVE-2022-23649, CVE-2022-36056 and CVE-2026-22703 are each one such
// comparison left out.
#pragma once

#include <string_view>

#include "sigstore/signed_content.h"
#include "sigstore/trust/checked.h"

namespace sigstore {

// Checks the body of an entry of Rekor v1: hashedrekord 0.0.1 (over an artifact, or an envelope's
// encoding), dsse 0.0.1, intoto 0.0.1 and 0.0.2. Fails with kTlogKind, kTlogMismatch, or what is
// wrong with `body`.
Check CheckBodyV1(std::string_view body, std::string_view kind, std::string_view version,
                  const SignedContent& content);

// Checks the body of an entry of Rekor v2: hashedrekord 0.0.2, and nothing else. The body is
// rebuilt from the content and must be the same, byte for byte. rekor-v2-spec, 6.1.4.
Check CheckBodyV2(std::string_view body, const SignedContent& content);

}  // namespace sigstore
