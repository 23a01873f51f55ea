// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "sigstore/log_entry.h"
#include "sigstore/trust/checked.h"

namespace sigstore {

// cosign's format before bundles: a JSON document of the image is signed, everything else is an
// annotation of the layer that holds it.

// Checks that the signed `payload` is about the image manifest `digest_hex`. The name of the image
// in it is not looked at: mirrors rename, and cosign never has. Fails with kPayload or kDigest, or
// what is wrong with its JSON.
Check CheckSimpleSigning(std::string_view payload, std::string_view digest_hex);

// Parses the annotation dev.sigstore.cosign/bundle: an entry of Rekor v1 with its promise, without
// a proof. Its kind is what its body says.
Checked<LogEntry> ParseLegacyEntry(std::string_view annotation);

// Parses the annotation dev.sigstore.cosign/rfc3161timestamp: a TimeStampResp, DER.
Checked<std::string> ParseLegacyTimestamp(std::string_view annotation);

}  // namespace sigstore
