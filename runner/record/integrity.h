// SPDX-License-Identifier: Apache-2.0
// OCSF's profile record_integrity, for records that leave the report. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace record {

inline constexpr char kAttestationList[] = "attestation_list";

// Links records, each to the one before it by that one's fingerprint: the last fingerprint shows
// whether a record was changed, dropped or added.
class IntegrityChain {
 public:
  // `uid` names the chain in each of its records.
  explicit IntegrityChain(std::string uid) : uid_(std::move(uid)) {}

  // Returns the next record of events.ocsf.jsonl with its place in the chain. Returns nullopt for
  // a line that is not a record; it has a number all the same, and no place.
  std::optional<std::string> Link(std::string_view line);

  // Returns the last record's fingerprint: the SHA-256 of its canonical form (RFC 8785) without
  // the fingerprint itself, in hexadecimal. Empty if there is no record.
  const std::string& head() const { return head_; }

 private:
  std::string uid_;
  int64_t count_ = 0;
  std::string head_;
  std::string head_uid_;
  int64_t head_type_ = 0;
};

}  // namespace record
