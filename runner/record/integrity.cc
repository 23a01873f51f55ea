// SPDX-License-Identifier: Apache-2.0
#include "record/integrity.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "record/limits.h"

namespace record {
namespace {

using codec::Json;

constexpr char kProfile[] = "record_integrity";
constexpr int kSha256 = 3;
constexpr int kHexadecimal = 1;
constexpr int kCanonicalJson = 2;
constexpr int64_t kExactMax = int64_t{1} << 53;  // RFC 8785 takes every number for a double.

// RFC 8785 sorts names by UTF-16, which for these, in ASCII, is by bytes; a record has whole
// numbers alone. Sets `*exact` to false where that does not hold.
Json Sort(const Json& json, bool* exact) {
  if (const Json::Array* array = json.array()) {
    Json sorted = Json::EmptyArray();
    for (const Json& element : *array) sorted.Push(Sort(element, exact));
    return sorted;
  }
  const Json::Object* object = json.object();
  if (object == nullptr) {
    const std::optional<int64_t> whole = json.integer();
    const bool large = whole && (*whole > kExactMax || *whole < -kExactMax);
    if (large || (!whole && json.number())) *exact = false;
    return json;
  }
  std::vector<const Json::Member*> members;
  for (const Json::Member& member : *object) {
    const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (!std::all_of(member.first.begin(), member.first.end(), ascii)) *exact = false;
    members.push_back(&member);
  }
  std::sort(members.begin(), members.end(),
            [](const Json::Member* a, const Json::Member* b) { return a->first < b->first; });
  Json sorted = Json::EmptyObject();
  for (const Json::Member* member : members) {
    sorted.Set(member->first, Sort(member->second, exact));
  }
  return sorted;
}

Json Fingerprint(const std::string& value) {
  Json json;
  json.Set("algorithm", "SHA-256").Set("algorithm_id", kSha256);
  json.Set("encoding_id", kHexadecimal).Set("serialization_id", kCanonicalJson);
  json.Set("value", value);
  return json;
}

Json MarkMetadata(const Json& metadata, const std::string& uid) {
  Json marked = Json::EmptyObject();
  Json profiles = Json::EmptyArray();
  for (const auto& [name, value] : *metadata.object()) {
    if (name == "profiles" && value.array() != nullptr) {
      profiles = value;
    } else if (name != "uid") {
      marked.Set(name, value);
    }
  }
  profiles.Push(kProfile);
  marked.Set("uid", uid).Set("profiles", std::move(profiles));
  return marked;
}

Json WithAttestation(const Json& record, Json attestation) {
  Json list = Json::EmptyArray();
  list.Push(std::move(attestation));
  Json json = record;
  json.Set(kAttestationList, std::move(list));
  return json;
}

}  // namespace

std::optional<std::string> IntegrityChain::Link(std::string_view line) {
  const std::string uid = uid_ + "/" + std::to_string(count_++);
  const Result<Json> parsed = codec::ParseJson(
      line, {.bytes_max = kRecordLineBytesMax, .depth_max = 16, .values_max = 5000});
  if (!parsed.ok() || parsed.value().object() == nullptr) return std::nullopt;
  const Json* metadata = parsed.value().Find("metadata");
  if (metadata == nullptr || metadata->object() == nullptr) return std::nullopt;
  Json record = Json::EmptyObject();
  for (const auto& [name, value] : *parsed.value().object()) {
    if (name == kAttestationList) return std::nullopt;
    record.Set(name, name == "metadata" ? MarkMetadata(value, uid) : value);
  }
  Json attestation;
  attestation.Set("chain_uid", uid_);
  if (!head_.empty()) {
    Json before;
    before.Set("uid", head_uid_).Set("type_uid", head_type_);
    before.Set("fingerprint", Fingerprint(head_));
    attestation.Set("prev_event", std::move(before));
  }
  bool exact = true;
  const Json canonical = Sort(WithAttestation(record, attestation), &exact);
  if (!exact) return std::nullopt;
  head_ = codec::Sha256Hex(codec::RenderJsonLine(canonical));
  head_uid_ = uid;
  head_type_ = record.IntegerAt("type_uid");
  attestation.Set("fingerprint", Fingerprint(head_));
  return codec::RenderJsonLine(WithAttestation(record, std::move(attestation)));
}

}  // namespace record
