// SPDX-License-Identifier: Apache-2.0
// The services of a Sigstore instance, as their clients see them: Fulcio v2, Rekor v1 and v2,
// timestamps of RFC 3161. Sources: sigstore/fulcio, fulcio.proto; sigstore/rekor, openapi.yaml;
// sigstore/rekor-tiles, CLIENTS.md; sigstore/timestamp-authority.
#pragma once

#include <string>
#include <string_view>

#include "attest/key.h"
#include "attest/signing_config.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "codec/data/json.h"
#include "net/http_client.h"

namespace attest {

// What is signed: an in-toto statement in a DSSE envelope.
struct Envelope {
  std::string payload;
  std::string signed_bytes;  // DSSE's pre-authentication encoding.
};

// Has Fulcio, at `authority`, certify `key` for the holder of `token`. Returns the leaf in DER.
// Fails with kSetup for what the authority refuses, with kTemporary where it cannot be asked.
Result<std::string> Certify(net::HttpClient& http, const std::string& authority, EVP_PKEY* key,
                            const Secret& token, Deadline deadline);

// Has a log record the signature. Returns the entry as a bundle has it (TransparencyLogEntry).
// Fails as Certify().
Result<codec::Json> Log(net::HttpClient& http, const Service& log, const Envelope& envelope,
                        const Signature& signature, Deadline deadline);

// Has an authority say that it has seen the signature. Returns a TimeStampResp in DER. Fails as
// Certify().
Result<std::string> Stamp(net::HttpClient& http, const std::string& authority,
                          std::string_view signature, Deadline deadline);

}  // namespace attest
