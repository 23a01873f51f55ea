// SPDX-License-Identifier: Apache-2.0
#include "image/trust.h"

#include <array>

#include "base/named_path.h"
#include "base/version.h"
#include "codec/data/digest.h"

namespace image {
namespace {

using codec::YamlEntry;
using codec::YamlFields;
using codec::YamlNode;

constexpr size_t kKeyBytesMax = size_t{1} << 16;
constexpr size_t kRootBytesMax = size_t{1} << 20;
constexpr size_t kRulesMax = 256;
constexpr std::string_view kPemBegin = "-----BEGIN";

// Fulcio's claims by the last arc of their OIDs (fulcio/docs/oid-info.md).
struct ClaimName {
  std::string_view name;
  int arc;
};
constexpr std::array<ClaimName, 10> kClaims = {{{"build_signer", 9},
                                                {"runner_environment", 11},
                                                {"source_repository", 12},
                                                {"source_digest", 13},
                                                {"source_ref", 14},
                                                {"source_owner", 16},
                                                {"build_config", 18},
                                                {"trigger", 20},
                                                {"run", 21},
                                                {"visibility", 22}}};

// A file of the repository, or the key itself.
Result<std::string> ParseKey(const YamlFields& fields, const TrustFile& read) {
  std::string text = TRY(fields.Text("key"));
  bool inlined = text.starts_with(kPemBegin);
  const std::string name = inlined ? "the key" : "the key " + text;
  Result<std::string> pem = inlined ? Result<std::string>(text) : read(text);
  if (!pem.ok()) return fields.Invalid("key", name + ": " + pem.error().what);
  Status usable = sigstore::CheckKey(pem.value());
  if (!usable.ok()) {
    return fields.Invalid("key", name + ": " + usable.error().what, usable.error().hint);
  }
  return pem;
}

Result<std::vector<std::pair<int, std::string>>> ParseClaims(const YamlFields& rule) {
  std::vector<std::pair<int, std::string>> claims;
  const YamlNode* node = rule.Find("claims");
  if (node == nullptr) return claims;
  std::vector<std::string_view> names;
  for (const ClaimName& claim : kClaims) names.push_back(claim.name);
  YamlFields fields = TRY(YamlFields::Open(rule.file(), *node, "claims", names));
  TRY(fields.RefuseEmpty(names));
  for (const YamlEntry& entry : fields.entries()) {
    std::string text = TRY(fields.Text(entry.key));
    for (const ClaimName& claim : kClaims) {
      if (claim.name == entry.key) claims.emplace_back(claim.arc, text);
    }
  }
  return claims;
}

Result<sigstore::SignerRule> ParseSigner(const YamlFields& fields, const TrustFile& read) {
  std::string identity = TRY(fields.Text("identity"));
  std::string issuer = TRY(fields.Text("issuer"));
  std::vector<std::pair<int, std::string>> claims = TRY(ParseClaims(fields));
  if (fields.Find("key") != nullptr) {
    if (!identity.empty() || !issuer.empty() || !claims.empty()) {
      return codec::InvalidAt(fields.file(), fields.at(),
                              "'key' cannot be combined with 'identity', 'issuer' or 'claims'");
    }
    sigstore::KeyRule rule;
    rule.pem = TRY(ParseKey(fields, read));
    rule.require_log = TRY(fields.Boolean("require_log", false));
    return sigstore::SignerRule(std::move(rule));
  }
  if (identity.empty() || issuer.empty()) {
    return codec::InvalidAt(fields.file(), fields.at(),
                            "the signer is missing: a 'key', or an 'identity' and its 'issuer'",
                            "key: .agentic-ci/cosign.pub");
  }
  return sigstore::SignerRule(sigstore::IdentityRule{issuer, identity, std::move(claims)});
}

Result<SignTarget> ParseTarget(const YamlFields& fields) {
  static constexpr std::array kTargets = {SignTarget::kAny, SignTarget::kIndex,
                                          SignTarget::kManifest};
  return kTargets[TRY(fields.Choice("sign_target", {"any", "index", "manifest"})).value_or(0)];
}

Result<TrustRule> ParseRule(const YamlNode& node, const std::string& file, const TrustFile& read) {
  YamlFields fields =
      TRY(YamlFields::Open(file, node, "trust",
                           {"repository", "key", "identity", "issuer", "claims", "predicate_types",
                            "sign_target", "require_log", "require_timestamp", "signatures"}));
  TRY(fields.RefuseEmpty({"key", "identity", "issuer", "claims", "sign_target"}));
  TrustRule rule;
  rule.origin = codec::Locate(file, node.at);
  rule.repository = TRY(fields.RequiredText("repository", "repository: ghcr.io/OWNER/*"));
  Result<codec::Glob> pattern = codec::Glob::Parse(rule.repository, '/');
  if (!pattern.ok()) return fields.Invalid("repository", pattern.error().what);
  rule.pattern = std::move(pattern).value();
  rule.options.signer = TRY(ParseSigner(fields, read));
  rule.options.predicate_types = TRY(fields.FilledTexts("predicate_types"));
  rule.options.require_log = TRY(fields.Boolean("require_log", true));
  rule.options.require_timestamp = TRY(fields.Boolean("require_timestamp", false));
  rule.target = TRY(ParseTarget(fields));
  rule.signatures = TRY(fields.FilledTexts("signatures"));
  for (const std::string& name : rule.signatures) {
    Result<Reference> reference = ParseReference(name);
    if (!reference.ok()) return fields.Invalid("signatures", reference.error().what);
  }
  return rule;
}

// Every field behind its length, so that no two policies give one text.
std::string Fingerprint(const TrustPolicy& policy, std::string_view root) {
  codec::Sha256 hash;
  auto add = [&](std::string_view text) {
    hash.Update(std::to_string(text.size()) + ":");
    hash.Update(text);
  };
  for (const TrustRule& rule : policy.rules) {
    add(rule.repository);
    if (const auto* key = std::get_if<sigstore::KeyRule>(&rule.options.signer)) {
      add(key->pem + (key->require_log ? "+log" : ""));
    } else {
      const auto& identity = std::get<sigstore::IdentityRule>(rule.options.signer);
      add(identity.issuer);
      add(identity.identity);
      for (const auto& [arc, value] : identity.claims) add(std::to_string(arc) + value);
    }
    for (const std::string& type : rule.options.predicate_types) add("type " + type);
    add(std::to_string(static_cast<int>(rule.target)) + (rule.options.require_log ? "l" : "") +
        (rule.options.require_timestamp ? "t" : ""));
    for (const std::string& place : rule.signatures) add("at " + place);
  }
  add(root);
  add(kVersion);  // The version of the rules of verification, and of the embedded root.
  return hash.Hex();
}

}  // namespace

std::vector<const TrustRule*> TrustPolicy::Matching(const Reference& reference) const {
  std::vector<const TrustRule*> matching;
  for (const TrustRule& rule : rules) {
    if (rule.pattern.Matches(reference.Name())) matching.push_back(&rule);
  }
  return matching;
}

Result<TrustPolicy> ParseTrust(const YamlFields& images, const TrustFile& read) {
  TrustPolicy policy;
  std::string root;
  TRY(images.RefuseEmpty({"trusted_root"}));
  std::string root_file = TRY(images.Text("trusted_root"));
  if (!root_file.empty()) {
    Result<std::string> text = read(root_file);
    if (!text.ok()) return images.Invalid("trusted_root", text.error().what);
    Result<sigstore::TrustedRoot> parsed = sigstore::ParseTrustedRoot(text.value());
    if (!parsed.ok()) return images.Invalid("trusted_root", parsed.error().what);
    policy.root = std::move(parsed).value();
    root = std::move(text).value();
  }
  if (const YamlNode* trust = TRY(images.List("trust"))) {
    if (trust->items.size() > kRulesMax)
      return images.Invalid("trust", "'trust' has more than 256 entries");
    for (const YamlNode& item : trust->items) {
      policy.rules.push_back(TRY(ParseRule(item, images.file(), read)));
    }
  }
  policy.fingerprint = Fingerprint(policy, root);
  return policy;
}

Result<TrustPolicy> OverrideTrust(TrustPolicy configured, const TrustOptions& given) {
  std::string root = configured.fingerprint;
  if (!given.root_file.empty()) {
    root = TRY(ReadNamedFile(given.root_file, kRootBytesMax).Context("reading the trusted root"));
    configured.root = TRY(sigstore::ParseTrustedRoot(root).Context(given.root_file));
  }
  if (given.has_rule()) {
    bool identity = given.key_file.empty();
    if (identity ? given.identity.empty() || given.issuer.empty()
                 : !given.identity.empty() || !given.issuer.empty()) {
      return Error{Code::kUsage,
                   "an image's signer must be a key, or an identity together with its issuer",
                   "--image-identity ID --image-issuer URL"};
    }
    TrustRule rule;
    rule.repository = "**";
    rule.pattern = TRY(codec::Glob::Parse(rule.repository, '/'));
    rule.origin = identity ? "--image-identity" : "--image-key";
    if (identity) {
      rule.options.signer = sigstore::IdentityRule{given.issuer, given.identity, {}};
    } else {
      sigstore::KeyRule key;
      key.pem = TRY(ReadNamedFile(given.key_file, kKeyBytesMax).Context("reading the key"));
      TRY(sigstore::CheckKey(key.pem).Context("the key " + given.key_file));
      rule.options.signer = std::move(key);
    }
    configured.rules.clear();
    configured.rules.push_back(std::move(rule));
  }
  configured.fingerprint = Fingerprint(configured, root);
  return configured;
}

}  // namespace image
