// SPDX-License-Identifier: Apache-2.0
// A log's signed statement about the state of its tree: a signed note. C2SP, tlog-checkpoint and
// signed-note.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sigstore/trust/checked.h"
#include "sigstore/trust/public_key.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

struct Checkpoint {
  struct Signature {
    std::string name;   // The signer,
    std::string hint;   // four bytes that identify its key,
    std::string bytes;  // and the signature.
  };
  std::string text;  // The signed text.
  std::string origin;
  uint64_t size = 0;
  std::string root;  // 32 bytes.
  std::vector<Signature> signatures;
};

// Fails with kCheckpointFormat; beyond 64 KiB or 64 signatures too.
Checked<Checkpoint> ParseCheckpoint(std::string_view envelope);

// Returns a key's number in signed notes: how the two generations of logs make it.
std::string NoteKeyHintV1(const PublicKey& key);
std::string NoteKeyHintV2(const PublicKey& key, std::string_view name);

// Verifies that the log `name` signed it with `key`: at least one line of that name and hint, and
// all of those. Lines of others (witnesses) are passed over. Fails with kCheckpointOrigin when the
// name is nowhere, else with kCheckpointSignature.
Check VerifyCheckpoint(const Checkpoint& checkpoint, std::string_view name, std::string_view hint,
                       const PublicKey& key);

}  // namespace sigstore
