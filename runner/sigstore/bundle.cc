// SPDX-License-Identifier: Apache-2.0
#include "sigstore/bundle.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include "sigstore/trust/certificate.h"
#include "sigstore/trust/proto_json.h"

namespace sigstore {
namespace {

// sigstore-go's bounds.
constexpr size_t kEntriesMax = 32;
constexpr size_t kTimestampsMax = 32;
constexpr size_t kCertificatesMax = 16;

constexpr auto kVersions = std::to_array<std::pair<std::string_view, int>>({
    {"application/vnd.dev.sigstore.bundle+json;version=0.1", 1},
    {"application/vnd.dev.sigstore.bundle+json;version=0.2", 2},
    {"application/vnd.dev.sigstore.bundle+json;version=0.3", 3},
    {"application/vnd.dev.sigstore.bundle.v0.3+json", 3},
});

Checked<int> ReadVersion(const codec::Json& json) {
  const codec::Json* type = json.Find("mediaType");
  const std::string* text = type == nullptr ? nullptr : type->string();
  for (const auto& [name, version] : kVersions) {
    if (text != nullptr && *text == name) return version;
  }
  return Rejection{Reason::kMediaType, text == nullptr
                                           ? "the bundle has no media type"
                                           : "'" + *text + "' is not a bundle of v0.1 to v0.3"};
}

Checked<int64_t> Natural(const Message& message, std::string_view name) {
  int64_t number = TRY(message.Integer(name));
  if (number < 0) {
    return Rejection{Reason::kTlogIndex,
                     message.where() + "." + std::string(name) + " is negative"};
  }
  return number;
}

Rejection NoMaterial(std::string_view what) { return {Reason::kMaterial, std::string(what)}; }

Checked<CertificateOwner> ReadOne(const Message& message) {
  std::string der = TRY(message.Bytes("rawBytes"));
  CertificateOwner certificate = ParseCertificate(der);
  if (certificate == nullptr) {
    return Rejection{Reason::kBadCertificate, "the bundle's certificate is malformed"};
  }
  if (IsSelfIssued(certificate.get())) {
    return Rejection{Reason::kRootInBundle, "the bundle contains a self-signed certificate"};
  }
  return certificate;
}

// The leaf; nullptr for a key. What else a chain holds is looked at and not used: the path to the
// anchor is the trusted root's.
Checked<CertificateOwner> ReadLeaf(const Message& material, int version) {
  bool one = material.Has("certificate");
  bool chain = material.Has("x509CertificateChain");
  bool key = material.Has("publicKey");
  if (one + chain + key != 1) {
    return NoMaterial("the bundle must have exactly one of a certificate, a chain and a key");
  }
  if (key) {
    TRY(material.Child("publicKey", {"hint"}));
    return CertificateOwner();
  }
  if (one) {
    Message certificate = TRY(material.Child("certificate", {"rawBytes"}));
    return ReadOne(certificate);
  }
  if (version >= 3) return NoMaterial("a bundle of v0.3 has one certificate, not a chain");
  Message list = TRY(material.Child("x509CertificateChain", {"certificates"}));
  std::vector<Message> certificates = TRY(list.Children("certificates", {"rawBytes"}));
  if (certificates.empty()) return NoMaterial("the bundle's certificate chain is empty");
  if (certificates.size() > kCertificatesMax) {
    return Rejection{Reason::kTooMany, "the bundle has more than 16 certificates"};
  }
  CertificateOwner leaf;
  for (const Message& message : certificates) {
    CertificateOwner certificate = TRY(ReadOne(message));
    if (leaf == nullptr) leaf = std::move(certificate);
  }
  return leaf;
}

Checked<InclusionProof> ReadProof(const Message& entry) {
  Message message = TRY(
      entry.Child("inclusionProof", {"logIndex", "rootHash", "treeSize", "hashes", "checkpoint"}));
  InclusionProof proof;
  proof.index = TRY(Natural(message, "logIndex"));
  proof.size = TRY(Natural(message, "treeSize"));
  if (message.Has("rootHash")) proof.root = TRY(message.Bytes("rootHash"));
  proof.path = TRY(message.BytesList("hashes"));
  Message checkpoint = TRY(message.Child("checkpoint", {"envelope"}));
  proof.checkpoint = TRY(checkpoint.Text("envelope"));
  return proof;
}

Checked<LogEntry> ReadEntry(const Message& message) {
  LogEntry entry;
  entry.index = TRY(Natural(message, "logIndex"));
  Message id = TRY(message.Child("logId", {"keyId"}));
  entry.key_id = TRY(id.Bytes("keyId"));
  Message kind = TRY(message.Child("kindVersion", {"kind", "version"}));
  entry.kind = TRY(kind.Text("kind"));
  entry.version = TRY(kind.Text("version"));
  entry.integrated_time = TRY(message.Integer("integratedTime"));
  if (message.Has("inclusionPromise")) {
    Message promise = TRY(message.Child("inclusionPromise", {"signedEntryTimestamp"}));
    entry.promise = TRY(promise.Bytes("signedEntryTimestamp"));
  }
  if (message.Has("inclusionProof")) {
    InclusionProof proof = TRY(ReadProof(message));
    entry.proof = std::move(proof);
  }
  entry.body = TRY(message.Bytes("canonicalizedBody"));
  return entry;
}

Checked<std::vector<LogEntry>> ReadEntries(const Message& material, int version) {
  std::vector<Message> messages = TRY(material.Children(
      "tlogEntries", {"logIndex", "logId", "kindVersion", "integratedTime", "inclusionPromise",
                      "inclusionProof", "canonicalizedBody"}));
  if (messages.size() > kEntriesMax) {
    return Rejection{Reason::kTooMany, "the bundle has more than 32 log entries"};
  }
  std::vector<LogEntry> entries;
  std::set<std::pair<std::string, int64_t>> seen;
  for (const Message& message : messages) {
    LogEntry entry = TRY(ReadEntry(message));
    if (!seen.emplace(entry.key_id, entry.index).second) {
      return Rejection{Reason::kTlogDuplicate, message.where() + " appears twice"};
    }
    if (version == 1 && entry.promise.empty()) {
      return Rejection{Reason::kMissingField,
                       message.where() + ": a bundle of v0.1 needs an inclusionPromise"};
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Checked<std::vector<std::string>> ReadTimestamps(const Message& material) {
  std::vector<std::string> timestamps;
  if (!material.Has("timestampVerificationData")) return timestamps;
  Message data = TRY(material.Child("timestampVerificationData", {"rfc3161Timestamps"}));
  std::vector<Message> messages = TRY(data.Children("rfc3161Timestamps", {"signedTimestamp"}));
  if (messages.size() > kTimestampsMax) {
    return Rejection{Reason::kTooMany, "the bundle has more than 32 timestamps"};
  }
  for (const Message& message : messages) {
    std::string der = TRY(message.Bytes("signedTimestamp"));
    timestamps.push_back(std::move(der));
  }
  return timestamps;
}

Checked<SignedContent> ReadMessageSignature(const Message& bundle) {
  Message message = TRY(bundle.Child("messageSignature", {"messageDigest", "signature"}));
  SignedContent content;
  if (message.Has("messageDigest")) {
    Message digest = TRY(message.Child("messageDigest", {"algorithm", "digest"}));
    std::string algorithm = TRY(digest.Text("algorithm"));
    std::string bytes = TRY(digest.Bytes("digest"));
    constexpr std::string_view kNames[] = {"SHA2_256", "SHA2_384", "SHA2_512"};
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (algorithm == kNames[i]) content.digests[i] = bytes;
    }
    if (content.DigestBy(Hash::kSha256) != bytes && content.DigestBy(Hash::kSha384) != bytes &&
        content.DigestBy(Hash::kSha512) != bytes) {
      return Rejection{Reason::kDigest, "the message's digest uses '" + algorithm + "'"};
    }
  }
  if (!message.Has("signature")) {
    return Rejection{Reason::kNoSignature, "the bundle's signature is missing"};
  }
  content.signature = TRY(message.Bytes("signature"));
  return content;
}

}  // namespace

std::string PreAuthenticationEncoding(std::string_view type, std::string_view payload) {
  std::string out = "DSSEv1 " + std::to_string(type.size()) + " ";
  out += type;
  out += " " + std::to_string(payload.size()) + " ";
  out += payload;
  return out;
}

Checked<Envelope> ParseEnvelope(const codec::Json& json, const std::string& where) {
  Message message = TRY(Message::Read(json, where, {"payload", "payloadType", "signatures"}));
  std::vector<Message> signatures = TRY(message.Children("signatures", {"sig", "keyid"}));
  if (signatures.size() != 1 || !signatures.front().Has("sig")) {
    return Rejection{Reason::kNoSignature, "the envelope does not have exactly one signature"};
  }
  Envelope envelope;
  envelope.type = TRY(message.Text("payloadType"));
  envelope.content.payload = TRY(message.Bytes("payload"));
  envelope.content.message = PreAuthenticationEncoding(envelope.type, *envelope.content.payload);
  envelope.content.signature = TRY(signatures.front().Bytes("sig"));
  return envelope;
}

Checked<Bundle> ParseBundle(std::string_view text) {
  codec::Json json = TRY(ReadJson(text, "bundle", kBundleBytesMax));
  if (json.object() == nullptr) return Rejection{Reason::kParse, "bundle is not an object"};
  Bundle bundle;
  // First, since another version may have other members.
  bundle.version = TRY(ReadVersion(json));
  Message message = TRY(Message::Read(
      json, "bundle", {"mediaType", "verificationMaterial", "messageSignature", "dsseEnvelope"}));
  Message material =
      TRY(message.Child("verificationMaterial", {"certificate", "x509CertificateChain", "publicKey",
                                                 "tlogEntries", "timestampVerificationData"}));
  bundle.leaf = TRY(ReadLeaf(material, bundle.version));
  bundle.entries = TRY(ReadEntries(material, bundle.version));
  bundle.timestamps = TRY(ReadTimestamps(material));
  bool envelope = message.Has("dsseEnvelope");
  if (envelope == message.Has("messageSignature")) {
    return Rejection{Reason::kNoSignature,
                     "the bundle must have exactly one of a message signature and an envelope"};
  }
  if (!envelope) {
    bundle.content = TRY(ReadMessageSignature(message));
    return bundle;
  }
  Envelope parsed = TRY(ParseEnvelope(*json.Find("dsseEnvelope"), "bundle.dsseEnvelope"));
  bundle.payload_type = std::move(parsed.type);
  bundle.content = std::move(parsed.content);
  return bundle;
}

}  // namespace sigstore
