// SPDX-License-Identifier: Apache-2.0
// The trust policy for images: repository patterns, and the keys and identities whose signatures
// are accepted for them. An image that no pattern matches is refused; unsigned images cannot be
// allowed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/yaml_fields.h"
#include "codec/glob/glob.h"
#include "image/source/reference.h"
#include "sigstore/verify.h"

namespace image {

// The manifests of an image of which one must be signed if its reference leads to an index of
// several platforms.
enum class SignTarget { kAny, kIndex, kManifest };

struct TrustRule {
  std::string repository;  // The pattern as written, over Reference::Name().
  codec::Glob pattern;     // `*` stops at '/', `**` does not.
  sigstore::VerifyOptions options;
  SignTarget target = SignTarget::kAny;
  std::vector<std::string> signatures;  // Repositories that hold signatures beside the image's own.
  std::string origin;                   // "--image-key", ".agentic-ci/config.yml:4:5": for people.
};

struct TrustPolicy {
  std::vector<TrustRule> rules;
  std::optional<sigstore::TrustedRoot> root;  // The trusted root; if nullopt, the embedded one.
  std::string fingerprint;  // SHA-256 of all of the above, hex: two equal ones decide alike.

  const sigstore::TrustedRoot& Root() const {
    return root ? *root : sigstore::EmbeddedTrustedRoot();
  }
  // Returns every rule whose pattern matches: what one of them accepts is accepted.
  std::vector<const TrustRule*> Matching(const Reference& reference) const;
};

// Gives a file that the policy names. Fails with kNotFound if there is none.
using TrustFile = std::function<Result<std::string>(const std::string& path)>;

// Parses `trust:` and `trusted_root:` in `images`; either may be absent. Fails with kInvalid,
// "file:line:col: error: what", for what is not known, contradicts itself, or names a file that is
// not there or not what it should be.
Result<TrustPolicy> ParseTrust(const codec::YamlFields& images, const TrustFile& read);

// The trust that a person gave on a command line, in place of the configuration: one rule for every
// image.
struct TrustOptions {
  std::string key_file;
  std::string identity;
  std::string issuer;
  std::string root_file;  // With or without a rule.

  bool has_rule() const { return !key_file.empty() || !identity.empty() || !issuer.empty(); }
};

// Returns `configured` with what was given in its place. Fails with kUsage for options that do not
// fit, such as an identity without issuer, with kNotFound or kInvalid for a file. Files are the
// caller's, not the repository's.
Result<TrustPolicy> OverrideTrust(TrustPolicy configured, const TrustOptions& given);

}  // namespace image
