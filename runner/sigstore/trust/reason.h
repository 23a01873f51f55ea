// SPDX-License-Identifier: Apache-2.0
// The codes for why a signature does not count, one for each cause, and their words in the output.
#pragma once

#include <string>
#include <string_view>

namespace sigstore {

// Why a signature does not count; one code for one cause, so that a test can tell a refusal for the
// right reason from one by luck. The words of `Render` are part of the output's contract.
enum class Reason {
  // The form of the input.
  kParse,         // "parse": not the JSON it should be, or a value of another type.
  kDuplicateKey,  // "duplicate-key": a name twice in one JSON object.
  kUnknownField,  // "unknown-field": a member that the format does not have.
  kMissingField,  // "missing-field"
  kTooMany,       // "too-many": more log entries, timestamps or subjects than are looked at.
  kMediaType,     // "media-type": not a bundle of v0.1 to v0.3.
  kBadBase64,     // "bad-base64"
  kTlogIndex,     // "tlog-index": a negative log index.
  kMaterial,      // "material": neither the certificate nor the key that the rule asks for.
  kRootInBundle,  // "root-in-bundle": a bundle may not bring its own trust anchor.
  kNoSignature,   // "no-signature": none there, or several where one is meant.
  kPayload,       // "payload": not cosign's simple signing document.

  // The transparency log.
  kTlogNone,             // "tlog-none": no entry of a log that the trusted root knows.
  kTlogDuplicate,        // "tlog-duplicate": the same entry twice.
  kTlogKind,             // "tlog-kind": a kind of entry that we do not know, or not what it says.
  kTlogMismatch,         // "tlog-mismatch": logged for another signature; begins with what differs:
                         // "digest", "signature" or "key".
  kLogValidity,          // "log-validity": outside the time for which the log's key is trusted.
  kSetSignature,         // "set-signature": the log's promise is not signed by it.
  kInclusionMissing,     // "inclusion-missing": a proof is required and not there.
  kInclusion,            // "inclusion": the entry is not in the tree.
  kCheckpointFormat,     // "checkpoint-format"
  kCheckpointOrigin,     // "checkpoint-origin": another log's.
  kCheckpointRoot,       // "checkpoint-root": another tree than the proof's.
  kCheckpointSignature,  // "checkpoint-signature"

  // The time of signing and the certificate at that time.
  kNoTimestamp,     // "no-timestamp": nothing proves when it was signed.
  kTsa,             // "tsa": a timestamp that does not verify.
  kIntegratedTime,  // "integrated-time": logged while the certificate was not valid.
  kCertExpired,     // "cert-expired": a certificate was not valid at a proved time.
  kCaValidity,      // "ca-validity": outside the time for which the authority is trusted.
  kBadCertificate,  // "bad-certificate": not a certificate, or not one for signing.
  kEku,             // "eku": not a certificate for signing code.
  kChain,           // "chain": no path to an authority of the trusted root.
  kSctMissing,      // "sct-missing": the certificate was not logged.
  kSctUnverified,   // "sct-unverified": no known log's signature says that it was.

  // The signer.
  kBadKey,            // "bad-key": the configured key is malformed.
  kKeyAlgorithm,      // "key-algorithm": a kind of key that we cannot or will not verify with.
  kIdentityMismatch,  // "identity-mismatch"
  kIssuerMismatch,    // "issuer-mismatch"
  kIssuerConflict,    // "issuer-conflict": the certificate names two.
  kClaimMismatch,     // "claim-mismatch"

  // The signed content.
  kSignature,      // "signature": not made with the key over these bytes.
  kDigest,         // "digest": another artifact was signed.
  kPayloadType,    // "payload-type": an envelope of something else than an in-toto statement.
  kStatement,      // "statement": not an in-toto statement.
  kSubject,        // "subject": the statement is about other artifacts.
  kPredicateType,  // "predicate-type": a statement that does not count as a signature.

  // The trusted root.
  kTrustRoot,          // "trust-root": malformed.
  kTrustRootValidity,  // "trust-root-validity": no time, or no start, for which a key is trusted.
  kTrustRootMissing,   // "trust-root-missing": needed and not given.
};

inline constexpr Reason kReasonLast = Reason::kTrustRootMissing;

std::string_view Render(Reason reason);

struct Rejection {
  Reason reason = Reason::kParse;
  std::string detail;  // Lower case, no full stop.
  // Set for an identity that does not match: what the certificate says, to be shown and to be
  // copied into the configuration. Else empty.
  std::string identity = {};
  std::string issuer = {};
};

// Renders a rejection: "tlog-mismatch: signature is not the one that was logged".
std::string Render(const Rejection& rejection);

}  // namespace sigstore
