// SPDX-License-Identifier: Apache-2.0
#include "image/trust.h"

#include <algorithm>
#include <array>

#include "base/sys.h"
#include "base/version.h"
#include "codec/data/digest.h"
#include "codec/text/nearest.h"

namespace image {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
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

// Reads one rule. The first error ends it.
class RuleReader {
 public:
  RuleReader(const YamlNode& node, const std::string& file, const TrustFile& read)
      : node_(node), file_(file), read_(read) {}

  Result<TrustRule> Read();

 private:
  Error Invalid(codec::Position at, std::string_view what, std::string_view hint = {}) const {
    return codec::InvalidAt(file_, at, what, hint);
  }
  Status CheckKeys(const YamlNode& node, std::string_view what,
                   const std::vector<std::string_view>& known) const;
  Result<std::string> Text(std::string_view key) const;
  Result<std::vector<std::string>> Texts(std::string_view key) const;
  Result<bool> Boolean(std::string_view key, bool fallback) const;
  Result<sigstore::SignerRule> Signer() const;
  Result<std::string> Key(const YamlNode& node) const;
  Result<std::vector<std::pair<int, std::string>>> Claims() const;
  Result<SignTarget> Target() const;

  const YamlNode& node_;
  const std::string& file_;
  const TrustFile& read_;
};

Status RuleReader::CheckKeys(const YamlNode& node, std::string_view what,
                             const std::vector<std::string_view>& known) const {
  if (node.kind != YamlKind::kMapping) {
    return Invalid(node.at, std::string(what) + " must be a mapping");
  }
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    return Invalid(entry.at, "unknown key '" + entry.key + "' in " + std::string(what),
                   codec::NearestName(entry.key, known));
  }
  return Ok();
}

// Empty when the key is not there.
Result<std::string> RuleReader::Text(std::string_view key) const {
  const YamlNode* value = node_.Find(key);
  if (value == nullptr) return std::string();
  if (value->kind != YamlKind::kScalar || value->text.empty()) {
    return Invalid(value->at, std::string(key) + " must be text");
  }
  return value->text;
}

Result<std::vector<std::string>> RuleReader::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const YamlNode* value = node_.Find(key);
  if (value == nullptr) return texts;
  bool list = value->kind == YamlKind::kSequence;
  for (const YamlNode& item : value->items) {
    list = list && item.kind == YamlKind::kScalar && !item.text.empty();
    texts.push_back(item.text);
  }
  if (!list) return Invalid(value->at, std::string(key) + " must be a list of text");
  return texts;
}

Result<bool> RuleReader::Boolean(std::string_view key, bool fallback) const {
  const YamlNode* value = node_.Find(key);
  if (value == nullptr) return fallback;
  std::optional<bool> boolean = codec::YamlBool(*value);
  if (!boolean) return Invalid(value->at, std::string(key) + " must be true or false");
  return *boolean;
}

// A file of the repository, or the key itself.
Result<std::string> RuleReader::Key(const YamlNode& node) const {
  if (node.text.starts_with(kPemBegin)) {
    Status usable = sigstore::CheckKey(node.text);
    if (!usable.ok()) {
      return Invalid(node.at, "the key: " + usable.error().what, usable.error().hint);
    }
    return node.text;
  }
  Result<std::string> pem = read_(node.text);
  if (!pem.ok()) return Invalid(node.at, "the key " + node.text + ": " + pem.error().what);
  Status usable = sigstore::CheckKey(pem.value());
  if (!usable.ok()) {
    return Invalid(node.at, "the key " + node.text + ": " + usable.error().what,
                   usable.error().hint);
  }
  return pem;
}

Result<std::vector<std::pair<int, std::string>>> RuleReader::Claims() const {
  std::vector<std::pair<int, std::string>> claims;
  const YamlNode* node = node_.Find("claims");
  if (node == nullptr) return claims;
  std::vector<std::string_view> names;
  for (const ClaimName& claim : kClaims) names.push_back(claim.name);
  TRY(CheckKeys(*node, "claims", names));
  if (node->entries.empty())
    return Invalid(node->at, "claims is empty", "source_ref: refs/heads/main");
  for (const YamlEntry& entry : node->entries) {
    if (entry.value.kind != YamlKind::kScalar || entry.value.text.empty()) {
      return Invalid(entry.value.at, "a claim must be text");
    }
    for (const ClaimName& claim : kClaims) {
      if (claim.name == entry.key) claims.emplace_back(claim.arc, entry.value.text);
    }
  }
  return claims;
}

Result<sigstore::SignerRule> RuleReader::Signer() const {
  std::string key = TRY(Text("key"));
  std::string identity = TRY(Text("identity"));
  std::string issuer = TRY(Text("issuer"));
  std::vector<std::pair<int, std::string>> claims = TRY(Claims());
  if (!key.empty()) {
    if (!identity.empty() || !issuer.empty() || !claims.empty()) {
      return Invalid(node_.at, "key cannot be combined with identity, issuer or claims");
    }
    sigstore::KeyRule rule;
    rule.pem = TRY(Key(*node_.Find("key")));
    rule.require_log = TRY(Boolean("require_log", false));
    return sigstore::SignerRule(std::move(rule));
  }
  if (identity.empty() || issuer.empty()) {
    return Invalid(node_.at, "the signer is missing: a key, or an identity and its issuer",
                   "key: .agentic-ci/cosign.pub");
  }
  return sigstore::SignerRule(sigstore::IdentityRule{issuer, identity, std::move(claims)});
}

Result<SignTarget> RuleReader::Target() const {
  std::string target = TRY(Text("sign_target"));
  if (target.empty() || target == "any") return SignTarget::kAny;
  if (target == "index") return SignTarget::kIndex;
  if (target == "manifest") return SignTarget::kManifest;
  return Invalid(node_.Find("sign_target")->at, "sign_target must be any, index or manifest",
                 codec::NearestName(target, {"any", "index", "manifest"}));
}

Result<TrustRule> RuleReader::Read() {
  TRY(CheckKeys(node_, "trust",
                {"repository", "key", "identity", "issuer", "claims", "predicate_types",
                 "sign_target", "require_log", "require_timestamp", "signatures"}));
  TrustRule rule;
  rule.origin = codec::Locate(file_, node_.at);
  rule.repository = TRY(Text("repository"));
  if (rule.repository.empty()) {
    return Invalid(node_.at, "repository is missing", "repository: ghcr.io/OWNER/*");
  }
  Result<codec::Glob> pattern = codec::Glob::Parse(rule.repository, '/');
  if (!pattern.ok()) return Invalid(node_.Find("repository")->at, pattern.error().what);
  rule.pattern = std::move(pattern).value();
  rule.options.signer = TRY(Signer());
  rule.options.predicate_types = TRY(Texts("predicate_types"));
  rule.options.require_log = TRY(Boolean("require_log", true));
  rule.options.require_timestamp = TRY(Boolean("require_timestamp", false));
  rule.target = TRY(Target());
  rule.signatures = TRY(Texts("signatures"));
  for (const std::string& name : rule.signatures) {
    Result<Reference> reference = ParseReference(name);
    if (!reference.ok()) return Invalid(node_.Find("signatures")->at, reference.error().what);
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
  add(kVersion);  // Of the rules of verification, and of the embedded root.
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

Result<TrustPolicy> ParseTrust(const YamlNode* trust, const YamlNode* trusted_root,
                               const std::string& file, const TrustFile& read) {
  TrustPolicy policy;
  std::string root;
  if (trusted_root != nullptr) {
    if (trusted_root->kind != YamlKind::kScalar) {
      return codec::InvalidAt(file, trusted_root->at,
                              "trusted_root must be a file in the repository");
    }
    Result<std::string> text = read(trusted_root->text);
    if (!text.ok()) return codec::InvalidAt(file, trusted_root->at, text.error().what);
    Result<sigstore::TrustedRoot> parsed = sigstore::ParseTrustedRoot(text.value());
    if (!parsed.ok()) return codec::InvalidAt(file, trusted_root->at, parsed.error().what);
    policy.root = std::move(parsed).value();
    root = std::move(text).value();
  }
  if (trust != nullptr) {
    if (trust->kind != YamlKind::kSequence || trust->items.size() > kRulesMax) {
      return codec::InvalidAt(file, trust->at, "trust must be a list of at most 256 entries");
    }
    for (const YamlNode& item : trust->items) {
      TrustRule rule = TRY(RuleReader(item, file, read).Read());
      policy.rules.push_back(std::move(rule));
    }
  }
  policy.fingerprint = Fingerprint(policy, root);
  return policy;
}

Result<TrustPolicy> OverrideTrust(TrustPolicy configured, const TrustOptions& given) {
  std::string root = configured.fingerprint;
  if (!given.root_file.empty()) {
    root = TRY(sys::ReadFile(given.root_file, kRootBytesMax).Context("reading the trusted root"));
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
      key.pem = TRY(sys::ReadFile(given.key_file, kKeyBytesMax).Context("reading the key"));
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
