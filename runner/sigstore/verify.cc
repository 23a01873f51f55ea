// SPDX-License-Identifier: Apache-2.0
#include "sigstore/verify.h"

#include <openssl/err.h>

#include <optional>
#include <utility>

#include "codec/text/hex.h"
#include "sigstore/bundle.h"
#include "sigstore/evidence.h"
#include "sigstore/simple_signing.h"
#include "sigstore/statement.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/proto_json.h"

namespace sigstore {
namespace {

// OpenSSL reports into a queue of the thread, which its TLS functions look at too: what a refused
// signature left there would be taken for a failed connection.
class CleanErrorQueue {
 public:
  CleanErrorQueue() = default;
  CleanErrorQueue(const CleanErrorQueue&) = delete;
  CleanErrorQueue& operator=(const CleanErrorQueue&) = delete;
  ~CleanErrorQueue() { ::ERR_clear_error(); }
};

// An empty digest would equal that of a subject that has none.
Check CheckDigestForm(std::string_view sha256_hex) {
  if (sha256_hex.size() == 64 &&
      sha256_hex.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
    return Pass();
  }
  return Rejection{Reason::kDigest, "'" + std::string(sha256_hex) + "' is not a SHA-256 digest"};
}

Verdict AsVerdict(Checked<Verified> verified) {
  if (verified.ok()) return std::move(verified).value();
  return std::move(verified).error();
}

Checked<Verified> Verify(std::string_view json, const Artifact& artifact,
                         const VerifyOptions& options, const TrustedRoot* root) {
  TRY(CheckDigestForm(artifact.sha256));
  Bundle bundle = TRY(ParseBundle(json));
  Evidence evidence{.leaf = std::move(bundle.leaf),
                    .entries = std::move(bundle.entries),
                    .timestamps = std::move(bundle.timestamps),
                    .stamped = bundle.content.signature,
                    .content = std::move(bundle.content),
                    .artifact = {codec::DecodeHex(artifact.sha256).value_or(""),
                                 codec::DecodeHex(artifact.sha384).value_or(""),
                                 codec::DecodeHex(artifact.sha512).value_or("")},
                    .proof_required = bundle.version > 1};
  std::optional<std::string> payload = evidence.content.payload;
  Verified verified = TRY(Prove(std::move(evidence), options, root));
  if (payload) {
    verified.predicate_type =
        TRY(CheckStatement(bundle.payload_type, *payload, artifact.sha256, options));
  }
  return verified;
}

Checked<Verified> Verify(const LegacySignature& layer, std::string_view digest_hex,
                         const VerifyOptions& options, const TrustedRoot* root) {
  TRY(CheckDigestForm(digest_hex));
  Evidence evidence;
  evidence.proof_required = false;
  std::string payload_type;
  if (layer.signature.empty()) {
    codec::Json json = TRY(ReadJson(layer.payload, "layer", kBundleBytesMax));
    Envelope envelope = TRY(ParseEnvelope(json, "layer"));
    payload_type = std::move(envelope.type);
    evidence.content = std::move(envelope.content);
    evidence.content.envelope_json = layer.payload;
    evidence.stamped = layer.payload;
  } else {
    evidence.content.signature =
        TRY(DecodeBytes(layer.signature, "annotation dev.cosignproject.cosign/signature"));
    evidence.content.message = layer.payload;
    evidence.stamped = evidence.content.signature;
  }
  if (!layer.certificate.empty()) {
    std::optional<PemBlock> block = ParsePem(layer.certificate);
    if (block && block->label == "CERTIFICATE") evidence.leaf = ParseCertificate(block->der);
    if (evidence.leaf == nullptr) {
      return Rejection{Reason::kBadCertificate, "the layer's certificate is malformed"};
    }
  }
  if (!layer.bundle.empty()) {
    LogEntry entry = TRY(ParseLegacyEntry(layer.bundle));
    evidence.entries.push_back(std::move(entry));
  }
  if (!layer.timestamp.empty()) {
    std::string timestamp = TRY(ParseLegacyTimestamp(layer.timestamp));
    evidence.timestamps.push_back(std::move(timestamp));
  }
  std::optional<std::string> payload = evidence.content.payload;
  Verified verified = TRY(Prove(std::move(evidence), options, root));
  if (payload) {
    verified.predicate_type = TRY(CheckStatement(payload_type, *payload, digest_hex, options));
  } else {
    TRY(CheckSimpleSigning(layer.payload, digest_hex));
  }
  return verified;
}

}  // namespace

Status CheckKey(std::string_view pem) {
  CleanErrorQueue clean;
  Checked<PublicKey> key = PublicKey::FromPem(pem, Reason::kBadKey);
  if (key.ok()) return Ok();
  return Error{Code::kInvalid, Render(key.error()),
               "cosign public-key --key cosign.key > cosign.pub"};
}

Verdict VerifyBundle(std::string_view bundle, const Artifact& artifact,
                     const VerifyOptions& options, const TrustedRoot* root) {
  CleanErrorQueue clean;
  return AsVerdict(Verify(bundle, artifact, options, root));
}

Verdict VerifyBundle(std::string_view bundle, std::string_view digest_hex,
                     const VerifyOptions& options, const TrustedRoot* root) {
  return VerifyBundle(bundle, Artifact{std::string(digest_hex)}, options, root);
}

Verdict VerifyLegacy(const LegacySignature& signature, std::string_view digest_hex,
                     const VerifyOptions& options, const TrustedRoot* root) {
  CleanErrorQueue clean;
  return AsVerdict(Verify(signature, digest_hex, options, root));
}

}  // namespace sigstore
