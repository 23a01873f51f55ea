// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codec/data/json.h"
#include "sigstore/log_entry.h"
#include "sigstore/signed_content.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/checked.h"

namespace sigstore {

// sigstore_bundle.proto, v0.1 to v0.3, as far as it can be checked without a trusted root.
// Binary values are raw.
struct Bundle {
  int version = 0;        // The second number: 1, 2 or 3.
  CertificateOwner leaf;  // Nullptr if signed with a key, of which a bundle has a hint at most.
  std::vector<LogEntry> entries;
  std::vector<std::string> timestamps;  // TimeStampResp, DER.
  // The content that is signed: of an envelope with its message, of an artifact with the one digest
  // that the bundle claims, or none. `verifier` is left for the caller.
  SignedContent content;
  std::string payload_type;  // The type of an envelope's payload; else empty.
};

inline constexpr size_t kBundleBytesMax = size_t{32} << 20;

Checked<Bundle> ParseBundle(std::string_view json);

// DSSE's JSON, of which exactly one signature is wanted.
struct Envelope {
  std::string type;
  SignedContent content;
};
Checked<Envelope> ParseEnvelope(const codec::Json& json, const std::string& where);

}  // namespace sigstore
