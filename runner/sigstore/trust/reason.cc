// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/reason.h"

#include <array>
#include <utility>

namespace sigstore {
namespace {

constexpr auto kCodes = std::to_array<std::pair<Reason, std::string_view>>({
    {Reason::kParse, "parse"},
    {Reason::kDuplicateKey, "duplicate-key"},
    {Reason::kUnknownField, "unknown-field"},
    {Reason::kMissingField, "missing-field"},
    {Reason::kTooMany, "too-many"},
    {Reason::kMediaType, "media-type"},
    {Reason::kBadBase64, "bad-base64"},
    {Reason::kTlogIndex, "tlog-index"},
    {Reason::kMaterial, "material"},
    {Reason::kRootInBundle, "root-in-bundle"},
    {Reason::kNoSignature, "no-signature"},
    {Reason::kPayload, "payload"},
    {Reason::kTlogNone, "tlog-none"},
    {Reason::kTlogDuplicate, "tlog-duplicate"},
    {Reason::kTlogKind, "tlog-kind"},
    {Reason::kTlogMismatch, "tlog-mismatch"},
    {Reason::kLogValidity, "log-validity"},
    {Reason::kSetSignature, "set-signature"},
    {Reason::kInclusionMissing, "inclusion-missing"},
    {Reason::kInclusion, "inclusion"},
    {Reason::kCheckpointFormat, "checkpoint-format"},
    {Reason::kCheckpointOrigin, "checkpoint-origin"},
    {Reason::kCheckpointRoot, "checkpoint-root"},
    {Reason::kCheckpointSignature, "checkpoint-signature"},
    {Reason::kNoTimestamp, "no-timestamp"},
    {Reason::kTsa, "tsa"},
    {Reason::kIntegratedTime, "integrated-time"},
    {Reason::kCertExpired, "cert-expired"},
    {Reason::kCaValidity, "ca-validity"},
    {Reason::kBadCertificate, "bad-certificate"},
    {Reason::kEku, "eku"},
    {Reason::kChain, "chain"},
    {Reason::kSctMissing, "sct-missing"},
    {Reason::kSctUnverified, "sct-unverified"},
    {Reason::kBadKey, "bad-key"},
    {Reason::kKeyAlgorithm, "key-algorithm"},
    {Reason::kIdentityMismatch, "identity-mismatch"},
    {Reason::kIssuerMismatch, "issuer-mismatch"},
    {Reason::kIssuerConflict, "issuer-conflict"},
    {Reason::kClaimMismatch, "claim-mismatch"},
    {Reason::kSignature, "signature"},
    {Reason::kDigest, "digest"},
    {Reason::kPayloadType, "payload-type"},
    {Reason::kStatement, "statement"},
    {Reason::kSubject, "subject"},
    {Reason::kPredicateType, "predicate-type"},
    {Reason::kTrustRoot, "trust-root"},
    {Reason::kTrustRootValidity, "trust-root-validity"},
    {Reason::kTrustRootMissing, "trust-root-missing"},
});

// Every reason is there, in the order of the enumeration.
constexpr bool Complete() {
  for (size_t i = 0; i < kCodes.size(); ++i) {
    if (kCodes[i].first != static_cast<Reason>(i)) return false;
  }
  return kCodes.size() == static_cast<size_t>(kReasonLast) + 1;
}
static_assert(Complete());

}  // namespace

std::string_view Render(Reason reason) { return kCodes.at(static_cast<size_t>(reason)).second; }

std::string Render(const Rejection& rejection) {
  return std::string(Render(rejection.reason)) + ": " + rejection.detail;
}

}  // namespace sigstore
