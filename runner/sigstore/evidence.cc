// SPDX-License-Identifier: Apache-2.0
#include "sigstore/evidence.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "codec/text/hex.h"
#include "sigstore/fulcio_identity.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/trust/path.h"
#include "sigstore/trust/sct.h"
#include "sigstore/trust/timestamp.h"

namespace sigstore {
namespace {

// A time that a trusted party attests.
struct ProvedTime {
  Instant at;
  bool by_log = false;  // Else by a timestamp authority.
};

struct LogProof {
  std::vector<int64_t> indices;
  std::vector<Logged> entries;
};

// Every entry of a log that the root knows; all of them must hold.
Checked<LogProof> ProveLogged(const Evidence& evidence, const TrustedInstance& instance) {
  LogProof proof;
  for (const LogEntry& entry : evidence.entries) {
    Logged logged =
        TRY(VerifyEntry(entry, evidence.content, instance.logs, evidence.proof_required));
    if (logged.log == nullptr) continue;
    // Without its promise, the number of an old entry is not signed.
    if (logged.time || entry.second_generation()) proof.indices.push_back(entry.index);
    proof.entries.push_back(logged);
  }
  return proof;
}

// The timestamps that must hold.
enum class Stamps {
  kAll,
  kKnown,    // Those of the trusted root's authorities.
  kIgnored,  // None.
};

// A key is not bound to a time: its timestamps matter only if one is required. And where a log
// entry suffices, a timestamp of an authority that the root does not know counts as little as none.
Stamps StampsThatMatter(const LogProof& log, const VerifyOptions& options) {
  if (options.require_timestamp) return Stamps::kAll;
  const KeyRule* key = std::get_if<KeyRule>(&options.signer);
  if (key != nullptr && !key->require_log) return Stamps::kIgnored;
  bool enough = std::any_of(log.entries.begin(), log.entries.end(), [&](const Logged& entry) {
    return key != nullptr || entry.time.has_value();
  });
  return enough ? Stamps::kKnown : Stamps::kAll;
}

Checked<std::vector<ProvedTime>> ProveTimes(const Evidence& evidence,
                                            const TrustedInstance& instance, const LogProof& log,
                                            Stamps stamps) {
  std::vector<ProvedTime> times;
  for (const Logged& entry : log.entries) {
    if (entry.time) times.push_back({*entry.time, true});
  }
  if (stamps == Stamps::kIgnored) return times;
  for (const std::string& response : evidence.timestamps) {
    std::optional<Instant> at =
        TRY(VerifyTimestamp(response, evidence.stamped, instance.timestamp_authorities));
    if (at) {
      times.push_back({*at, false});
    } else if (stamps == Stamps::kAll) {
      return Rejection{Reason::kTsa, "the timestamp is not from an authority in the trusted root"};
    }
  }
  return times;
}

// A log's key is trusted for a time; an entry is of the time that the log signed, or else of the
// time of the signature in it.
Check CheckLogValidity(const LogProof& proof, const std::vector<ProvedTime>& times,
                       bool log_required) {
  for (const Logged& entry : proof.entries) {
    const Interval& valid_for = entry.log->valid_for;
    bool ok = entry.time ? valid_for.Contains(*entry.time)
                         : std::all_of(times.begin(), times.end(), [&](const ProvedTime& time) {
                             return valid_for.Contains(time.at);
                           });
    if (!ok) {
      return Rejection{Reason::kLogValidity, "the trusted root does not trust the log '" +
                                                 entry.log->host + "' at the time of signing"};
    }
    if (log_required && !entry.time && times.empty() && valid_for.end) {
      return Rejection{Reason::kNoTimestamp, "there is no proof of when the log '" +
                                                 entry.log->host +
                                                 "', no longer trusted, had the entry"};
    }
  }
  return Pass();
}

// Checks what a certificate must be to sign with, wherever it is from.
Check CheckLeaf(const X509* leaf) {
  X509* certificate = const_cast<X509*>(leaf);
  // Either says so: for the first, an authority that may not sign certificates is not an authority.
  if (::X509_check_ca(certificate) != 0 ||
      (::X509_get_extension_flags(certificate) & EXFLAG_CA) != 0) {
    return Rejection{Reason::kBadCertificate, "an authority's certificate must not sign artifacts"};
  }
  bool stated = ::X509_get_ext_by_NID(leaf, NID_ext_key_usage, -1) >= 0;
  if (!stated || !Permits(leaf, NID_code_sign, false)) {
    return Rejection{Reason::kEku, "the certificate is not for code signing"};
  }
  return Pass();
}

// The hybrid model: everything from the leaf to the anchor, and the trust in the anchor, holds at
// every proved time. Never at the time of looking.
Check CheckTimes(const Chain& chain, const TrustedAuthority& authority,
                 const std::vector<ProvedTime>& times) {
  for (const ProvedTime& time : times) {
    const X509* invalid = FirstInvalid(chain, time.at);
    if (invalid != nullptr && invalid == chain.front().get() && time.by_log) {
      return Rejection{Reason::kIntegratedTime,
                       "logged at a time when the certificate was not valid"};
    }
    if (invalid != nullptr) {
      return Rejection{Reason::kCertExpired,
                       invalid == chain.front().get()
                           ? "the certificate was not valid at the time of signing"
                           : "an authority's certificate was not valid at the time of signing"};
    }
    if (authority.valid_for && !authority.valid_for->Contains(time.at)) {
      return Rejection{Reason::kCaValidity, "the trusted root does not trust the authority '" +
                                                authority.uri + "' at the time of signing"};
    }
  }
  return Pass();
}

Checked<Chain> ChainBy(X509* leaf, const TrustedAuthority& trusted,
                       const std::vector<ProvedTime>& times) {
  Authority authority = TRY(ReadAuthority(trusted));
  Chain chain = TRY(BuildChain(leaf, authority, NID_code_sign));
  if (chain.size() < 2) {
    return Rejection{Reason::kBadCertificate, "a trust anchor must not sign artifacts"};
  }
  TRY(CheckTimes(chain, trusted, times));
  return chain;
}

// The path to an authority of the root. Equal names say nothing: each of those is tried.
Checked<Chain> FindChain(X509* leaf, const TrustedInstance& instance,
                         const std::vector<ProvedTime>& times) {
  Rejection why{Reason::kChain,
                "the trusted root has no certificate authority with its issuer's name"};
  for (const TrustedAuthority& authority : instance.certificate_authorities) {
    if (!MayHaveIssued(authority, leaf)) continue;
    Checked<Chain> chain = ChainBy(leaf, authority, times);
    if (chain.ok()) return chain;
    if (why.reason == Reason::kChain) why = chain.error();
  }
  return why;
}

// The certificate's holder, if the rule accepts it, at the proved times.
Check ProveIdentity(X509* leaf, const IdentityRule& rule, const VerifyOptions& options,
                    const TrustedInstance& instance, const std::vector<ProvedTime>& times,
                    Verified* verified) {
  TRY(CheckLeaf(leaf));
  if (times.empty()) {
    return Rejection{Reason::kNoTimestamp,
                     "neither a log nor a timestamp authority attests when it was signed"};
  }
  Chain chain = TRY(FindChain(leaf, instance, times));
  // An instance without certificate logs (GitHub's own) vouches by its timestamps alone, and only
  // where no log is asked for.
  if (options.require_log || !instance.certificate_logs.empty()) {
    TRY(VerifyScts(leaf, chain[1].get(), instance.certificate_logs));
  }
  FulcioIdentity identity = TRY(ReadIdentity(leaf));
  verified->signer = TRY(MatchIdentity(identity, rule));
  verified->issuer = identity.issuer;
  return Pass();
}

// The digests that the signature claims to be over must be the artifact's.
Check CheckDigests(const Evidence& evidence) {
  for (size_t i = 0; i < std::size(evidence.artifact); ++i) {
    const std::string& claimed = evidence.content.digests[i];
    if (claimed.empty() || claimed == evidence.artifact[i]) continue;
    return Rejection{Reason::kDigest, evidence.artifact[i].empty()
                                          ? "the signature is over an unknown digest"
                                          : "the signature is over another artifact"};
  }
  return Pass();
}

Check CheckSignature(const Evidence& evidence, const PublicKey& key) {
  const SignedContent& content = evidence.content;
  if (!content.message) {
    TRY(CheckDigests(evidence));
    if (key.kind() == PublicKey::Kind::kEd25519) {
      return Rejection{Reason::kKeyAlgorithm,
                       "an Ed25519 signature over a file (Ed25519ph) is not supported; use an "
                       "attestation, or an ECDSA key"};
    }
  }
  for (Hash hash : HashesFor(key.kind())) {
    const std::string& digest = evidence.artifact[static_cast<size_t>(hash)];
    bool made = content.message
                    ? key.Verifies(hash, *content.message, content.signature)
                    : !digest.empty() && key.VerifiesDigest(hash, digest, content.signature);
    if (made) return Pass();
  }
  std::string what = "the signature was not made over this content with this key";
  if (key.kind() == PublicKey::Kind::kEd25519) {
    what += ", or it uses Ed25519ph, which is not supported";
  }
  return Rejection{Reason::kSignature, std::move(what)};
}

Checked<Verified> ProveBy(const Evidence& evidence, const VerifyOptions& options,
                          const PublicKey& key, const TrustedInstance& instance) {
  const KeyRule* key_rule = std::get_if<KeyRule>(&options.signer);
  bool require_log = key_rule ? key_rule->require_log : options.require_log;
  LogProof log = TRY(ProveLogged(evidence, instance));
  if (require_log && log.entries.empty()) {
    return Rejection{Reason::kTlogNone, "the signature is in no log of the trusted root"};
  }
  if (options.require_timestamp && evidence.timestamps.empty()) {
    return Rejection{Reason::kNoTimestamp, "there is no timestamp authority's timestamp"};
  }
  std::vector<ProvedTime> times =
      TRY(ProveTimes(evidence, instance, log, StampsThatMatter(log, options)));
  Verified verified;
  if (const IdentityRule* rule = std::get_if<IdentityRule>(&options.signer)) {
    TRY(ProveIdentity(evidence.leaf.get(), *rule, options, instance, times, &verified));
  } else {
    verified.signer = "key sha256:" + codec::EncodeHex(Digest(Hash::kSha256, key.spki()));
  }
  TRY(CheckLogValidity(log, times, require_log));
  TRY(CheckSignature(evidence, key));
  verified.log_indices = std::move(log.indices);
  for (const ProvedTime& time : times) verified.times.push_back(time.at.seconds);
  return verified;
}

// Returns whether `reason` is that the evidence is of another instance altogether, rather than
// wrong: it says least.
bool Foreign(Reason reason) {
  return reason == Reason::kTlogNone || reason == Reason::kTsa || reason == Reason::kChain;
}

Checked<PublicKey> ReadSigner(Evidence* evidence, const VerifyOptions& options) {
  if (const KeyRule* rule = std::get_if<KeyRule>(&options.signer)) {
    PublicKey key = TRY(PublicKey::FromPem(rule->pem, Reason::kBadKey));
    if (evidence->leaf != nullptr) {
      return Rejection{Reason::kMaterial, "signed with a certificate, not with a key"};
    }
    evidence->content.verifier = {{"PUBLIC KEY", key.spki()}, key.kind(), key.bits()};
    return key;
  }
  if (evidence->leaf == nullptr) {
    return Rejection{Reason::kMaterial, "signed with a key, not with a certificate"};
  }
  PublicKey key = TRY(PublicKey::FromCertificate(evidence->leaf.get()));
  evidence->content.verifier = {
      {"CERTIFICATE", DerOf(evidence->leaf.get())}, key.kind(), key.bits()};
  return key;
}

}  // namespace

Checked<Verified> Prove(Evidence evidence, const VerifyOptions& options, const TrustedRoot* root) {
  PublicKey key = TRY(ReadSigner(&evidence, options));
  if (!evidence.content.message) {
    // If nothing is claimed, the log's entry is compared with the truth at once.
    bool claimed =
        std::any_of(std::begin(evidence.content.digests), std::end(evidence.content.digests),
                    [](const std::string& digest) { return !digest.empty(); });
    for (size_t i = 0; !claimed && i < std::size(evidence.artifact); ++i) {
      evidence.content.digests[i] = evidence.artifact[i];
    }
  }
  const KeyRule* rule = std::get_if<KeyRule>(&options.signer);
  bool rootless = rule != nullptr && !rule->require_log && !options.require_timestamp;
  if (root == nullptr || root->instances.empty()) {
    if (rootless) return ProveBy(evidence, options, key, TrustedInstance{});
    return Rejection{Reason::kTrustRootMissing, "a trusted root is required but missing"};
  }
  std::optional<Rejection> why;
  for (const TrustedInstance& instance : root->instances) {
    Checked<Verified> verified = ProveBy(evidence, options, key, instance);
    if (verified.ok()) return verified;
    if (!why || Foreign(why->reason)) why = std::move(verified).error();
  }
  return *std::move(why);
}

}  // namespace sigstore
