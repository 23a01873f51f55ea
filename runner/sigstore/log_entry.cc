// SPDX-License-Identifier: Apache-2.0
#include "sigstore/log_entry.h"

#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "sigstore/checkpoint.h"
#include "sigstore/log_body.h"
#include "sigstore/trust/log_key.h"
#include "sigstore/trust/merkle.h"
#include "sigstore/trust/public_key.h"

namespace sigstore {
namespace {

// The log's promise that it will have the entry, with its time: over canonical JSON, whose values
// need no escape.
Check VerifyPromise(const LogEntry& entry, const PublicKey& key) {
  std::string text = "{\"body\":\"" + codec::EncodeBase64(entry.body) +
                     "\",\"integratedTime\":" + std::to_string(entry.integrated_time) +
                     ",\"logID\":\"" + codec::EncodeHex(entry.key_id) +
                     "\",\"logIndex\":" + std::to_string(entry.index) + "}";
  if (key.Verifies(Hash::kSha256, text, entry.promise)) return Pass();
  return Rejection{Reason::kSetSignature, "the log entry's promise is not signed by its log"};
}

// The tree is the checkpoint's, since that is what is signed.
Check VerifyProof(const LogEntry& entry, const TrustedLog& log, const PublicKey& key) {
  const InclusionProof& proof = *entry.proof;
  Checkpoint checkpoint = TRY(ParseCheckpoint(proof.checkpoint));
  int64_t index = proof.index;
  if (entry.second_generation()) {
    if (checkpoint.origin != log.host) {
      return Rejection{Reason::kCheckpointOrigin, "the checkpoint is from '" + checkpoint.origin +
                                                      "', not from '" + log.host + "'"};
    }
    TRY(VerifyCheckpoint(checkpoint, log.host, NoteKeyHintV2(key, log.host), key));
    index = entry.index;  // The proof's own fields mean nothing here.
  } else {
    std::string name = checkpoint.origin.substr(0, checkpoint.origin.find(" - "));
    TRY(VerifyCheckpoint(checkpoint, name, NoteKeyHintV1(key), key));
    if (proof.root != checkpoint.root || static_cast<uint64_t>(proof.size) != checkpoint.size) {
      return Rejection{Reason::kCheckpointRoot, "the checkpoint is for a different tree"};
    }
  }
  if (!ProvesInclusion(LeafHash(entry.body), static_cast<uint64_t>(index), checkpoint.size,
                       proof.path, checkpoint.root)) {
    return Rejection{Reason::kInclusion, "the log entry is not in the log's tree"};
  }
  return Pass();
}

}  // namespace

Checked<Logged> VerifyEntry(const LogEntry& entry, const SignedContent& content,
                            const std::vector<TrustedLog>& logs, bool proof_required) {
  Logged logged{FindLog(logs, entry.key_id), std::nullopt};
  if (logged.log == nullptr) return logged;
  PublicKey key = TRY(KeyOf(*logged.log));
  if (!entry.proof && (proof_required || entry.second_generation() || entry.promise.empty())) {
    return Rejection{Reason::kInclusionMissing, "the log entry has no inclusion proof"};
  }
  if (entry.second_generation()) {
    TRY(CheckBodyV2(entry.body, content));
  } else {
    TRY(CheckBodyV1(entry.body, entry.kind, entry.version, content));
    if (!entry.promise.empty()) {
      TRY(VerifyPromise(entry, key));
      logged.time = Instant{entry.integrated_time};
    }
  }
  if (entry.proof) TRY(VerifyProof(entry, *logged.log, key));
  return logged;
}

}  // namespace sigstore
