// SPDX-License-Identifier: Apache-2.0
#include "sigstore/simple_signing.h"

#include <optional>
#include <string>

#include "codec/data/json.h"
#include "codec/text/hex.h"
#include "sigstore/bundle.h"
#include "sigstore/trust/proto_json.h"
#include "sigstore/trust/public_key.h"

namespace sigstore {
namespace {

constexpr std::string_view kType = "cosign container image signature";
constexpr std::string_view kEntryPlace = "annotation dev.sigstore.cosign/bundle";
constexpr std::string_view kTimestampPlace = "annotation dev.sigstore.cosign/rfc3161timestamp";

}  // namespace

Check CheckSimpleSigning(std::string_view payload, std::string_view digest_hex) {
  codec::Json json = TRY(ReadJson(payload, "payload", kBundleBytesMax));
  const codec::Json* critical = json.Find("critical");
  const codec::Json* image = critical == nullptr ? nullptr : critical->Find("image");
  if (image == nullptr || critical->StringAt("type") != kType) {
    return Rejection{Reason::kPayload, "the payload is not a " + std::string(kType)};
  }
  std::string digest = image->StringAt("docker-manifest-digest");
  if (digest != "sha256:" + std::string(digest_hex)) {
    return Rejection{Reason::kDigest, "the signature is for '" + digest + "'"};
  }
  return Pass();
}

Checked<LogEntry> ParseLegacyEntry(std::string_view annotation) {
  std::string place(kEntryPlace);
  codec::Json json = TRY(ReadJson(annotation, place, kBundleBytesMax));
  Message message = TRY(Message::Read(json, place, {"SignedEntryTimestamp", "Payload"}));
  Message payload = TRY(message.Child("Payload", {"body", "integratedTime", "logIndex", "logID"}));
  LogEntry entry;
  entry.promise = TRY(message.Bytes("SignedEntryTimestamp"));
  entry.body = TRY(payload.Bytes("body"));
  entry.integrated_time = TRY(payload.Integer("integratedTime"));
  entry.index = TRY(payload.Integer("logIndex"));
  if (entry.index < 0) return Rejection{Reason::kTlogIndex, place + ": logIndex is negative"};
  std::string id = TRY(payload.Text("logID"));
  std::optional<std::string> key_id = codec::DecodeHex(id);
  if (!key_id || key_id->size() != 32)
    return Rejection{Reason::kParse, place + ": logID is not 64 hexadecimal digits"};
  entry.key_id = *std::move(key_id);
  codec::Json body = TRY(ReadJson(entry.body, "the log entry's body", kBundleBytesMax));
  entry.kind = body.StringAt("kind");
  entry.version = body.StringAt("apiVersion");
  if (entry.second_generation()) {
    return Rejection{Reason::kTlogKind, place + ": an entry of Rekor v2 has no promise"};
  }
  return entry;
}

Checked<std::string> ParseLegacyTimestamp(std::string_view annotation) {
  codec::Json json = TRY(ReadJson(annotation, std::string(kTimestampPlace), kBundleBytesMax));
  Message message =
      TRY(Message::Read(json, std::string(kTimestampPlace), {"SignedRFC3161Timestamp"}));
  return message.Bytes("SignedRFC3161Timestamp");
}

}  // namespace sigstore
