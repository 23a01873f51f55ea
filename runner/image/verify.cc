// SPDX-License-Identifier: Apache-2.0
#include "image/verify.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "codec/data/json.h"
#include "image/signatures.h"

namespace image {
namespace {

using sigstore::Reason;

constexpr size_t kShownMax = 8;  // The rejected candidates that are shown to a person.

bool Wants(const TrustRule& rule, const ResolvedManifest& chain, bool leaf) {
  if (!chain.indexed || rule.target == SignTarget::kAny) return true;
  return (rule.target == SignTarget::kManifest) == leaf;
}

class Verifier {
 public:
  Verifier(Source& source, const SourceOpener& open, const VerifyRequest& request,
           std::vector<const TrustRule*> rules, Deadline deadline)
      : source_(source),
        open_(open),
        request_(request),
        rules_(std::move(rules)),
        deadline_(deadline) {}

  // Returns true if something signs `digest`; `image` then says who and where.
  bool Verify(const ResolvedManifest& chain, bool leaf, VerifiedImage* image);
  ImageRefusal Refuse(const ResolvedManifest& chain);

 private:
  Lookup Find(const std::string& digest, const std::vector<const TrustRule*>& rules);
  bool Try(const Candidate& candidate, const std::string& digest, const TrustRule& rule,
           VerifiedImage* image);
  RefusalKind Kind() const;

  Source& source_;
  const SourceOpener& open_;
  const VerifyRequest& request_;
  std::vector<const TrustRule*> rules_;
  Deadline deadline_;
  std::vector<RejectedCandidate> rejected_;
  std::vector<std::string> failures_;
};

// Everywhere that the rules name, each place once.
Lookup Verifier::Find(const std::string& digest, const std::vector<const TrustRule*>& rules) {
  bool attestations = false;
  std::vector<std::string> places;
  for (const TrustRule* rule : rules) {
    attestations = attestations || !rule->options.predicate_types.empty();
    for (const std::string& place : rule->signatures) {
      if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    }
  }
  Lookup all;
  for (size_t i = 0; i < request_.bundles.size(); ++i) {
    all.candidates.push_back({"bundle file " + std::to_string(i + 1), request_.bundles[i]});
  }
  auto add = [&](Source& source, const std::string& prefix) {
    Lookup found = FindSignatures(source, digest, attestations, deadline_);
    for (Candidate& candidate : found.candidates) {
      candidate.where = prefix + candidate.where;
      all.candidates.push_back(std::move(candidate));
    }
    for (const std::string& failure : found.failures) all.failures.push_back(prefix + failure);
  };
  add(source_, "");
  for (const std::string& place : places) {
    Result<Reference> reference = ParseReference(place);
    ENSURE(reference.ok());  // ParseTrust has read it.
    Result<std::unique_ptr<Source>> source = open_(reference.value());
    if (source.ok()) {
      add(*source.value(), reference.value().Name() + ": ");
    } else {
      all.failures.push_back(place + ": " + source.error().what);
    }
  }
  return all;
}

bool Verifier::Try(const Candidate& candidate, const std::string& digest, const TrustRule& rule,
                   VerifiedImage* image) {
  const sigstore::TrustedRoot& root = request_.trust->Root();
  std::string_view hex = std::string_view(digest).substr(digest.find(':') + 1);
  const std::string* bundle = std::get_if<std::string>(&candidate.signature);
  sigstore::Verdict verdict =
      bundle != nullptr
          ? sigstore::VerifyBundle(*bundle, hex, rule.options, &root)
          : sigstore::VerifyLegacy(std::get<sigstore::LegacySignature>(candidate.signature), hex,
                                   rule.options, &root);
  if (auto* rejection = std::get_if<sigstore::Rejection>(&verdict)) {
    rejected_.push_back({digest, candidate.where, rule.origin, std::move(*rejection)});
    return false;
  }
  auto& verified = std::get<sigstore::Verified>(verdict);
  image->signed_digest = digest;
  image->where = candidate.where;
  image->signer = std::move(verified.signer);
  image->issuer = std::move(verified.issuer);
  image->predicate_type = std::move(verified.predicate_type);
  image->log_indices = std::move(verified.log_indices);
  return true;
}

bool Verifier::Verify(const ResolvedManifest& chain, bool leaf, VerifiedImage* image) {
  std::vector<const TrustRule*> rules;
  for (const TrustRule* rule : rules_) {
    if (Wants(*rule, chain, leaf)) rules.push_back(rule);
  }
  if (rules.empty()) return false;
  const std::string& digest = leaf ? chain.leaf.digest : chain.top.digest;
  Lookup found = Find(digest, rules);
  for (const Candidate& candidate : found.candidates) {
    for (const TrustRule* rule : rules) {
      if (Try(candidate, digest, *rule, image)) return true;
    }
  }
  failures_.insert(failures_.end(), found.failures.begin(), found.failures.end());
  return false;
}

RefusalKind Verifier::Kind() const {
  if (!failures_.empty()) return RefusalKind::kLookupFailed;
  if (rejected_.empty()) return RefusalKind::kNoSignature;
  auto any = [&](std::initializer_list<Reason> reasons) {
    return std::any_of(rejected_.begin(), rejected_.end(), [&](const RejectedCandidate& one) {
      return std::find(reasons.begin(), reasons.end(), one.rejection.reason) != reasons.end();
    });
  };
  if (any({Reason::kIdentityMismatch, Reason::kIssuerMismatch, Reason::kClaimMismatch})) {
    return RefusalKind::kIdentityMismatch;
  }
  if (any({Reason::kTrustRoot, Reason::kTrustRootMissing, Reason::kTrustRootValidity})) {
    return RefusalKind::kTrustRootMissing;
  }
  return RefusalKind::kCryptoInvalid;
}

std::string What(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::kNoMatch:
      return "no entry of the image policy matches this repository";
    case RefusalKind::kNoSignature:
      return "it is not signed: there is neither a signature tag nor a referrer";
    case RefusalKind::kLookupFailed:
      return "its signatures could not be looked up";
    case RefusalKind::kIdentityMismatch:
      return "it is signed, but not by a signer that the image policy accepts";
    case RefusalKind::kTrustRootMissing:
      return "its signatures cannot be verified without a trusted root";
    case RefusalKind::kCryptoInvalid:
      return "it has signatures, but none of them is valid";
    case RefusalKind::kPlatform:
      return "the signed manifest is for a different platform than the unsigned index says";
  }
  return {};
}

// A certificate's text as one YAML value, whatever it holds: a branch may be called anything, and
// identities have branches in them.
std::string YamlValue(const std::string& text) {
  bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/:._@+-").find(c) != std::string_view::npos;
  });
  return plain ? text : codec::RenderJsonLine(codec::Json(text));
}

// Returns what to put into the configuration, for a person who decides to trust that signer.
std::string Accepting(const std::string& repository, const sigstore::Rejection* rejection) {
  std::string text = "images:\n  trust:\n    - repository: " + repository + "\n";
  if (rejection == nullptr) return text + "      key: .agentic-ci/cosign.pub";
  return text + "      identity: " + YamlValue(rejection->identity) +
         "\n      issuer: " + YamlValue(rejection->issuer);
}

ImageRefusal Verifier::Refuse(const ResolvedManifest& chain) {
  ImageRefusal refusal;
  refusal.kind = Kind();
  refusal.reference = request_.reference.ToString();
  refusal.digest = chain.top.digest;
  refusal.what = What(refusal.kind);
  if (refusal.kind == RefusalKind::kIdentityMismatch) {
    for (const RejectedCandidate& one : rejected_) {
      if (one.rejection.identity.empty()) continue;
      refusal.hint = Accepting(request_.reference.Name(), &one.rejection);
      break;
    }
  }
  if (refusal.kind == RefusalKind::kNoSignature &&
      request_.reference.kind == Reference::Kind::kRegistry) {
    refusal.hint =
        "cosign sign --key cosign.key " + request_.reference.Name() + "@" + refusal.digest;
  }
  refusal.rejected = std::move(rejected_);
  refusal.failures = std::move(failures_);
  return refusal;
}

ImageRefusal NoMatch(const VerifyRequest& request) {
  ImageRefusal refusal;
  refusal.kind = RefusalKind::kNoMatch;
  refusal.reference = request.reference.ToString();
  refusal.what = What(refusal.kind);
  refusal.hint = Accepting(request.reference.Name(), nullptr);
  return refusal;
}

bool Differs(const Platform& wanted, const Platform& said) {
  return said.os != wanted.os || said.architecture != wanted.architecture ||
         (!said.variant.empty() && !wanted.variant.empty() && said.variant != wanted.variant);
}

}  // namespace

std::string_view Render(RefusalKind kind) {
  switch (kind) {
    case RefusalKind::kNoMatch:
      return "no-match";
    case RefusalKind::kNoSignature:
      return "no-signature";
    case RefusalKind::kLookupFailed:
      return "lookup-failed";
    case RefusalKind::kIdentityMismatch:
      return "identity-mismatch";
    case RefusalKind::kTrustRootMissing:
      return "trust-root-missing";
    case RefusalKind::kCryptoInvalid:
      return "crypto-invalid";
    case RefusalKind::kPlatform:
      return "platform";
  }
  return "?";
}

Result<ResolvedManifest> ResolveManifest(Source& source, const VerifyRequest& request,
                                         Deadline deadline) {
  ResolvedManifest chain;
  const Reference& reference = request.reference;
  chain.top = TRY(
      source.FetchManifest(reference.digest.empty() ? reference.tag : reference.digest, deadline));
  std::variant<Index, Manifest> top = TRY(ParseManifest(chain.top.bytes, chain.top.media_type));
  if (Manifest* manifest = std::get_if<Manifest>(&top)) {
    chain.leaf = chain.top;
    chain.manifest = std::move(*manifest);
  } else {
    chain.indexed = true;
    Descriptor chosen = TRY(ChoosePlatform(std::get<Index>(top), request.platform));
    chain.leaf = TRY(source.FetchManifest(chosen.digest, deadline));
    if (static_cast<int64_t>(chain.leaf.bytes.size()) != chosen.size) {
      return Error{Code::kRefused,
                   "the manifest " + chosen.digest + " has a different size than the index says"};
    }
    std::variant<Index, Manifest> leaf =
        TRY(ParseManifest(chain.leaf.bytes, chain.leaf.media_type));
    if (!std::holds_alternative<Manifest>(leaf)) {
      return Error{Code::kInvalid, "an index that refers to another index is not an image"};
    }
    chain.manifest = std::get<Manifest>(std::move(leaf));
  }
  TRY(CheckRunnable(chain.manifest));
  return chain;
}

std::string RenderPlatform(const Platform& platform) {
  return platform.os + "/" + platform.architecture +
         (platform.variant.empty() ? "" : "/" + platform.variant);
}

Error ToError(const ImageRefusal& refusal) {
  Error error{refusal.kind == RefusalKind::kLookupFailed ? Code::kTemporary : Code::kRefused,
              "the image " + refusal.reference + " is refused (" +
                  std::string(Render(refusal.kind)) + "): " + refusal.what,
              refusal.hint};
  for (const std::string& failure : refusal.failures) error.what += "\n" + failure;
  for (size_t i = 0; i < refusal.rejected.size() && i < kShownMax; ++i) {
    const RejectedCandidate& one = refusal.rejected[i];
    error.what += "\n" + one.where + ", against " + one.rule + ": " + Render(one.rejection);
    if (!one.rejection.identity.empty()) {
      error.what += "; signed by " + one.rejection.identity + ", issuer " + one.rejection.issuer;
    }
  }
  if (refusal.rejected.size() > kShownMax) {
    error.what += "\nand " + std::to_string(refusal.rejected.size() - kShownMax) + " more";
  }
  return error;
}

Result<ImageVerdict> VerifyImage(Source& source, const SourceOpener& open,
                                 const VerifyRequest& request, Deadline deadline) {
  std::vector<const TrustRule*> rules = request.trust->Matching(request.reference);
  if (rules.empty()) return ImageVerdict(NoMatch(request));
  ResolvedManifest chain = TRY(ResolveManifest(source, request, deadline));
  Verifier verifier(source, open, request, std::move(rules), deadline);
  VerifiedImage image;
  // A signed index commits to its manifests by their digests; an unsigned one to nothing.
  bool accepted = verifier.Verify(chain, false, &image);
  bool leaf_only = !accepted && chain.indexed;
  if (leaf_only) accepted = verifier.Verify(chain, true, &image);
  if (!accepted) return ImageVerdict(verifier.Refuse(chain));

  image.reference = request.reference;
  image.digest = chain.top.digest;
  image.manifest_digest = chain.leaf.digest;
  image.manifest_bytes = std::move(chain.leaf.bytes);
  image.manifest = std::move(chain.manifest);
  image.config_bytes = TRY(source.FetchBlob(image.manifest.config, kConfigBytesMax, deadline)
                               .Context("fetching the image's configuration"));
  image.config = TRY(ParseImageConfig(image.config_bytes));
  if (!Differs(request.platform, image.config.platform)) return ImageVerdict(std::move(image));
  if (leaf_only) {
    // The author of the index chose one signed image in place of another.
    ImageRefusal refusal;
    refusal.kind = RefusalKind::kPlatform;
    refusal.reference = request.reference.ToString();
    refusal.digest = image.digest;
    refusal.what = What(refusal.kind) + ": " + RenderPlatform(image.config.platform);
    return ImageVerdict(std::move(refusal));
  }
  return Error{Code::kUnsupported, "the image " + request.reference.ToString() + " is for " +
                                       RenderPlatform(image.config.platform) + ", not for " +
                                       RenderPlatform(request.platform)};
}

}  // namespace image
