// SPDX-License-Identifier: Apache-2.0
// An entry of a transparency log as a bundle has it, and its parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sigstore/signed_content.h"
#include "sigstore/trust/checked.h"
#include "sigstore/trust/trusted_root.h"

namespace sigstore {

// sigstore_rekor.proto: InclusionProof.
struct InclusionProof {
  int64_t index = 0;  // In the tree, where the entry's own may count several trees.
  std::string root;
  int64_t size = 0;
  std::vector<std::string> path;
  std::string checkpoint;
};

// sigstore_rekor.proto: TransparencyLogEntry; binary values are raw. Numbers are not negative.
struct LogEntry {
  int64_t index = 0;
  std::string key_id;
  std::string kind;
  std::string version;
  int64_t integrated_time = 0;  // Unix seconds; a claim unless the promise is signed.
  std::string promise;          // The signed entry timestamp; may be empty.
  std::optional<InclusionProof> proof;
  std::string body;

  // True for Rekor v2: no promise, no time; hashedrekord 0.0.2 is all that it logs.
  bool second_generation() const { return version == "0.0.2" && kind == "hashedrekord"; }
};

// The facts that an entry proves.
struct Logged {
  const TrustedLog* log = nullptr;  // Nullptr for a log that is not in the trusted root.
  std::optional<Instant> time;      // When, if the log signed that.
};

// Verifies that the log says that it has this very signature. With `proof_required` a promise alone
// is not enough (bundles since v0.2). Fails with a reason of the log's: see reason.h.
Checked<Logged> VerifyEntry(const LogEntry& entry, const SignedContent& content,
                            const std::vector<TrustedLog>& logs, bool proof_required);

}  // namespace sigstore
