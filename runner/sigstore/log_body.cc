// SPDX-License-Identifier: Apache-2.0
#include "sigstore/log_body.h"

#include <initializer_list>
#include <optional>
#include <string>

#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "sigstore/trust/proto_json.h"

namespace sigstore {
namespace {

constexpr size_t kBodyBytesMax = size_t{16} << 20;
constexpr std::string_view kWhere = "the log entry's body";

using Path = std::initializer_list<std::string_view>;

Rejection Mismatch(std::string_view what) {
  return {Reason::kTlogMismatch, std::string(what) + " is not what was logged"};
}

Checked<std::string> TextAt(const codec::Json& json, Path path) {
  const codec::Json* at = &json;
  std::string place(kWhere);
  for (std::string_view name : path) {
    place += "." + std::string(name);
    at = at == nullptr ? nullptr : at->Find(name);
  }
  const std::string* text = at == nullptr ? nullptr : at->string();
  if (text == nullptr || text->empty()) {
    return Rejection{Reason::kMissingField, place + " is missing"};
  }
  return *text;
}

Checked<std::string> BytesAt(const codec::Json& json, Path path) {
  std::string text = TRY(TextAt(json, path));
  return DecodeBytes(text, std::string(kWhere));
}

// The only element of a list.
Checked<const codec::Json*> OnlyAt(const codec::Json& json, Path path) {
  const codec::Json* at = &json;
  for (std::string_view name : path) at = at == nullptr ? nullptr : at->Find(name);
  const codec::Json::Array* list = at == nullptr ? nullptr : at->array();
  if (list == nullptr || list->size() != 1) return Mismatch("signature");
  return &list->front();
}

// The key that was logged: base64 of PEM. Compared as DER, since PEM has many spellings.
Check CheckKey(const codec::Json& json, Path path, const SignedContent& content) {
  std::string pem = TRY(BytesAt(json, path));
  std::optional<PemBlock> block = ParsePem(pem);
  if (!block || block->label != content.verifier.pem.label ||
      block->der != content.verifier.pem.der) {
    return Mismatch("key");
  }
  return Pass();
}

Check CheckSignature(std::string_view logged, const SignedContent& content) {
  if (logged != content.signature) return Mismatch("signature");
  return Pass();
}

// A hash of SHA-256 as `algorithm` and hexadecimal `value`.
Check CheckSha256(const codec::Json& json, Path algorithm, Path value, std::string_view hex) {
  std::string name = TRY(TextAt(json, algorithm));
  std::string logged = TRY(TextAt(json, value));
  if (name != "sha256" || logged != hex) return Mismatch("digest");
  return Pass();
}

Check CheckHashedRekord(const codec::Json& json, const SignedContent& content) {
  std::string algorithm = TRY(TextAt(json, {"spec", "data", "hash", "algorithm"}));
  std::string value = TRY(TextAt(json, {"spec", "data", "hash", "value"}));
  std::optional<Hash> hash;
  if (algorithm == "sha256") hash = Hash::kSha256;
  if (algorithm == "sha384") hash = Hash::kSha384;
  if (algorithm == "sha512") hash = Hash::kSha512;
  if (!hash || value != codec::EncodeHex(content.DigestBy(*hash))) return Mismatch("digest");
  std::string signature = TRY(BytesAt(json, {"spec", "signature", "content"}));
  TRY(CheckSignature(signature, content));
  return CheckKey(json, {"spec", "signature", "publicKey", "content"}, content);
}

Check CheckDsse(const codec::Json& json, const SignedContent& content) {
  const codec::Json* only = TRY(OnlyAt(json, {"spec", "signatures"}));
  std::string signature = TRY(BytesAt(*only, {"signature"}));
  TRY(CheckSignature(signature, content));
  TRY(CheckKey(*only, {"verifier"}, content));
  // `envelopeHash` is over the client's spelling of the JSON, which no bundle keeps.
  return CheckSha256(json, {"spec", "payloadHash", "algorithm"}, {"spec", "payloadHash", "value"},
                     codec::Sha256Hex(*content.payload));
}

Check CheckIntoto(const codec::Json& json, const SignedContent& content) {
  const codec::Json* only = TRY(OnlyAt(json, {"spec", "content", "envelope", "signatures"}));
  // Encoded twice: the log took the envelope's text for bytes.
  std::string encoded = TRY(BytesAt(*only, {"sig"}));
  std::string signature = TRY(DecodeBytes(encoded, "the log entry's signature"));
  TRY(CheckSignature(signature, content));
  TRY(CheckKey(*only, {"publicKey"}, content));
  return CheckSha256(json, {"spec", "content", "payloadHash", "algorithm"},
                     {"spec", "content", "payloadHash", "value"},
                     codec::Sha256Hex(*content.payload));
}

// cosign's first attestations: the envelope's text as it was sent, which is what a registry keeps.
Check CheckOldIntoto(const codec::Json& json, const SignedContent& content) {
  TRY(CheckSha256(json, {"spec", "content", "hash", "algorithm"},
                  {"spec", "content", "hash", "value"}, codec::Sha256Hex(content.envelope_json)));
  return CheckKey(json, {"spec", "publicKey"}, content);
}

struct Algorithm {
  Hash hash;
  std::string_view hash_name;
  std::string key_name;
};

// Returns what Rekor v2 may say of a key: v1.common.PublicKeyDetails.
std::vector<Algorithm> AlgorithmsFor(const Verifier& verifier) {
  switch (verifier.kind) {
    case PublicKey::Kind::kP256:
      return {{Hash::kSha256, "SHA2_256", "PKIX_ECDSA_P256_SHA_256"}};
    case PublicKey::Kind::kP384:
      return {{Hash::kSha384, "SHA2_384", "PKIX_ECDSA_P384_SHA_384"},
              {Hash::kSha256, "SHA2_256", "PKIX_ECDSA_P384_SHA_256"}};
    case PublicKey::Kind::kP521:
      return {{Hash::kSha512, "SHA2_512", "PKIX_ECDSA_P521_SHA_512"},
              {Hash::kSha256, "SHA2_256", "PKIX_ECDSA_P521_SHA_256"}};
    case PublicKey::Kind::kRsa:
      return {{Hash::kSha256, "SHA2_256",
               "PKIX_RSA_PKCS1V15_" + std::to_string(verifier.bits) + "_SHA256"}};
    case PublicKey::Kind::kEd25519:
      return {{Hash::kSha512, "SHA2_512", "PKIX_ED25519_PH"},
              {Hash::kSha512, "SHA2_512", "PKIX_ED25519"}};
  }
  return {};
}

// JCS (RFC 8785): nothing in it needs an escape.
std::string Rebuild(const Algorithm& algorithm, const SignedContent& content) {
  std::string raw = "{\"rawBytes\":\"" + codec::EncodeBase64(content.verifier.pem.der) + "\"}";
  bool certificate = content.verifier.pem.label == "CERTIFICATE";
  std::string details = "\"keyDetails\":\"" + algorithm.key_name + "\"";
  return R"({"apiVersion":"0.0.2","kind":"hashedrekord","spec":{"hashedRekordV002":{"data":)"
         R"({"algorithm":")" +
         std::string(algorithm.hash_name) + R"(","digest":")" +
         codec::EncodeBase64(content.DigestBy(algorithm.hash)) + R"("},"signature":{"content":")" +
         codec::EncodeBase64(content.signature) + R"(","verifier":{)" +
         (certificate ? details + ",\"x509Certificate\":" + raw
                      : details + ",\"publicKey\":" + raw) +
         "}}}}}";
}

// Returns which field differs, for the reader of the message: the bytes have decided.
std::string Difference(std::string_view body, const SignedContent& content) {
  constexpr std::string_view kUnknown = "digest, signature or key";
  Result<codec::Json> parsed = codec::ParseJson(body);
  if (!parsed.ok()) return std::string(kUnknown);
  const codec::Json& json = parsed.value();
  std::string_view entry = "hashedRekordV002";
  Checked<std::string> digest = BytesAt(json, {"spec", entry, "data", "digest"});
  bool known = digest.ok() && (digest.value() == content.DigestBy(Hash::kSha256) ||
                               digest.value() == content.DigestBy(Hash::kSha384) ||
                               digest.value() == content.DigestBy(Hash::kSha512));
  if (digest.ok() && !known) return "digest";
  Checked<std::string> signature = BytesAt(json, {"spec", entry, "signature", "content"});
  if (signature.ok() && signature.value() != content.signature) return "signature";
  return known && signature.ok() ? "key" : std::string(kUnknown);
}

}  // namespace

Check CheckBodyV1(std::string_view body, std::string_view kind, std::string_view version,
                  const SignedContent& content) {
  codec::Json json = TRY(ReadJson(body, std::string(kWhere), kBodyBytesMax));
  std::string logged_kind = TRY(TextAt(json, {"kind"}));
  std::string logged_version = TRY(TextAt(json, {"apiVersion"}));
  if (logged_kind != kind || logged_version != version) {
    return Rejection{Reason::kTlogKind, "the log entry is not of the declared kind"};
  }
  if (kind == "hashedrekord" && version == "0.0.1") return CheckHashedRekord(json, content);
  if (content.payload) {
    if (kind == "dsse" && version == "0.0.1") return CheckDsse(json, content);
    if (kind == "intoto" && version == "0.0.2") return CheckIntoto(json, content);
    bool old = kind == "intoto" && version == "0.0.1" && !content.envelope_json.empty();
    if (old) return CheckOldIntoto(json, content);
  }
  return Rejection{Reason::kTlogKind, "a log entry of kind '" + logged_kind + "' " +
                                          logged_version + " does not contain such a signature"};
}

Check CheckBodyV2(std::string_view body, const SignedContent& content) {
  for (const Algorithm& algorithm : AlgorithmsFor(content.verifier)) {
    if (!content.DigestBy(algorithm.hash).empty() && body == Rebuild(algorithm, content)) {
      return Pass();
    }
  }
  return Mismatch(Difference(body, content));
}

}  // namespace sigstore
