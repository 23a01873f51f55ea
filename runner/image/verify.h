// SPDX-License-Identifier: Apache-2.0
// Decides whether an image may be run: its manifest's signatures are checked against the policy
// before anything else is fetched. Order and multi-arch rule: cosign's, tightened;
// docs/reference/images.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "image/source/manifest.h"
#include "image/source/reference.h"
#include "image/source/source.h"
#include "image/trust.h"

namespace image {

// An image that the policy accepts. Everything in it has the digest that was signed, or one that a
// signed document names.
struct VerifiedImage {
  Reference reference;
  std::string digest;           // The digest that the reference leads to: an index or a manifest.
  std::string manifest_digest;  // The digest of this platform's manifest; often the same.
  std::string signed_digest;    // The one of the two that is signed.
  std::string where;  // The place of the signature that counted: "tag sha256-....sig, layer 0".
  std::string signer;
  std::string issuer;  // Empty for keys.
  std::string predicate_type;
  std::vector<int64_t> log_indices;
  std::string manifest_bytes;
  std::string config_bytes;
  Manifest manifest;
  ImageConfig config;
};

// Kept apart, because what to do about them differs.
enum class RefusalKind {
  kNoMatch,           // "no-match": no rule of the policy is about this repository.
  kNoSignature,       // "no-signature": every place was asked, and none has any.
  kLookupFailed,      // "lookup-failed": a place could not be queried: unknown.
  kIdentityMismatch,  // "identity-mismatch": another identity signed.
  kTrustRootMissing,  // "trust-root-missing": a trusted root is needed and missing or invalid.
  kCryptoInvalid,     // "crypto-invalid": signatures, and none holds.
  kPlatform,          // "platform": the signed manifest is not the one that was chosen.
};

std::string_view Render(RefusalKind kind);

// Renders a platform: "linux/arm64/v8".
std::string RenderPlatform(const Platform& platform);

// A signature that did not count, and why.
struct RejectedCandidate {
  std::string digest;  // The digest for which signatures were looked up.
  std::string where;
  std::string rule;  // TrustRule::origin.
  sigstore::Rejection rejection;
};

struct ImageRefusal {
  RefusalKind kind = RefusalKind::kNoMatch;
  std::string reference;
  std::string digest;  // Empty before it was resolved.
  std::string what;
  std::string hint;  // Lines of configuration, where they would help.
  std::vector<RejectedCandidate> rejected;
  std::vector<std::string> failures;  // Places that could not be asked.
};

// Returns an error of kTemporary for a failed lookup, else of kRefused, with each candidate's
// reason on a line of its own.
Error ToError(const ImageRefusal& refusal);

using ImageVerdict = std::variant<VerifiedImage, ImageRefusal>;

struct VerifyRequest {
  Reference reference;
  const TrustPolicy* trust = nullptr;
  Platform platform = HostPlatform();
  std::vector<std::string> bundles;  // Texts of Sigstore bundles that were given.
};

// The documents that a reference leads to: one manifest, or an index and the manifest chosen from
// it.
struct ResolvedManifest {
  Document top;
  Document leaf;  // The same document when there is no index.
  Manifest manifest;
  bool indexed = false;
};

// Fetches the manifest of an image for the requested platform, without verifying who signed it.
Result<ResolvedManifest> ResolveManifest(Source& source, const VerifyRequest& request,
                                         Deadline deadline);

// Opens the repositories that hold only signatures.
using SourceOpener = std::function<Result<std::unique_ptr<Source>>(const Reference& reference)>;

// Verifies an image. `source` is the reference's own. An Error means that there is no verdict: the
// image cannot be fetched, is malformed, or has nothing for the platform.
Result<ImageVerdict> VerifyImage(Source& source, const SourceOpener& open,
                                 const VerifyRequest& request, Deadline deadline);

}  // namespace image
