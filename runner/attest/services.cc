// SPDX-License-Identifier: Apache-2.0
#include "attest/services.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ts.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/free_with.h"
#include "codec/text/base64.h"
#include "codec/text/hex.h"
#include "codec/text/neutral.h"
#include "net/retry.h"
#include "sigstore/trust/certificate.h"

namespace attest {
namespace {

using codec::Json;

constexpr size_t kResponseShownMax = 200;

using RequestOwner = std::unique_ptr<X509_REQ, FreeWith<X509_REQ_free>>;
using StampRequestOwner = std::unique_ptr<TS_REQ, FreeWith<TS_REQ_free>>;
using ImprintOwner = std::unique_ptr<TS_MSG_IMPRINT, FreeWith<TS_MSG_IMPRINT_free>>;
using AlgorithmOwner = std::unique_ptr<X509_ALGOR, FreeWith<X509_ALGOR_free>>;

// The certificate, or the bare key.
std::string VerifierPem(const Signature& signature) {
  return sigstore::RenderPem(signature.certificate.empty()
                                 ? sigstore::PemBlock{"PUBLIC KEY", signature.spki}
                                 : sigstore::PemBlock{"CERTIFICATE", signature.certificate});
}

// A request to certify `key`. Its subject is empty: the authority reads the key and the signature
// alone.
std::string CertificateRequest(EVP_PKEY* key) {
  const RequestOwner request(::X509_REQ_new());
  ENSURE(request != nullptr && ::X509_REQ_set_pubkey(request.get(), key) == 1);
  ENSURE(::X509_REQ_sign(request.get(), key, ::EVP_sha256()) > 0);
  const BioOwner bio(::BIO_new(::BIO_s_mem()));
  ENSURE(::PEM_write_bio_X509_REQ(bio.get(), request.get()) == 1);
  return sigstore::TextOf(bio.get());
}

Error Refused(const std::string& who, const net::HttpResponse& response) {
  const bool later = response.status == 429 || response.status >= 500;
  return Error{later ? Code::kTemporary : Code::kSetup,
               who + " responded with " + std::to_string(response.status) + ": " +
                   codec::NeutralLine(response.body, kResponseShownMax)};
}

Error Odd(const std::string& who, const std::string& what) {
  return Error{Code::kTemporary, who + ": " + what};
}

// Asking twice does no harm: at worst, there are two certificates, entries or timestamps.
Result<std::string> Post(net::HttpClient& http, const std::string& who, net::HttpRequest request,
                         const char* type, Deadline deadline) {
  net::RetryPolicy policy;
  policy.attempts_max = 4;
  policy.repeatable = true;
  request.method = "POST";
  request.headers.emplace_back("content-type", type);
  const net::HttpResponse response =
      TRY(net::SendWithRetries(http, request, policy, deadline).Context(who));
  if (response.status < 200 || response.status > 299) return Refused(who, response);
  return response.body;
}

std::string HexToBase64(const std::string& hex) {
  return codec::EncodeBase64(codec::DecodeHex(hex).value_or(""));
}

// Rekor v1's response, {uuid: entry}, as a bundle has an entry.
Result<Json> ConvertEntry(const std::string& who, const Json& response) {
  if (response.object() == nullptr || response.object()->size() != 1) {
    return Odd(who, "the response is not one entry");
  }
  const Json& entry = response.object()->front().second;
  const Json* verification = entry.Find("verification");
  const Json* proof = verification == nullptr ? nullptr : verification->Find("inclusionProof");
  if (proof == nullptr || proof->Find("hashes") == nullptr ||
      proof->Find("hashes")->array() == nullptr) {
    return Odd(who, "the entry has no proof of inclusion");
  }
  Json hashes = Json::EmptyArray();
  for (const Json& hash : *proof->Find("hashes")->array()) {
    hashes.Push(HexToBase64(hash.string() == nullptr ? "" : *hash.string()));
  }
  const auto text = [](int64_t number) { return std::to_string(number); };
  Json id, kind, promise, checkpoint, inclusion, made;
  id.Set("keyId", HexToBase64(entry.StringAt("logID")));
  kind.Set("kind", "dsse").Set("version", "0.0.1");
  promise.Set("signedEntryTimestamp", verification->StringAt("signedEntryTimestamp"));
  checkpoint.Set("envelope", proof->StringAt("checkpoint"));
  inclusion.Set("logIndex", text(proof->IntegerAt("logIndex")));
  inclusion.Set("rootHash", HexToBase64(proof->StringAt("rootHash")));
  inclusion.Set("treeSize", text(proof->IntegerAt("treeSize"))).Set("hashes", std::move(hashes));
  inclusion.Set("checkpoint", std::move(checkpoint));
  made.Set("logIndex", text(entry.IntegerAt("logIndex"))).Set("logId", std::move(id));
  made.Set("kindVersion", std::move(kind));
  made.Set("integratedTime", text(entry.IntegerAt("integratedTime")));
  made.Set("inclusionPromise", std::move(promise)).Set("inclusionProof", std::move(inclusion));
  made.Set("canonicalizedBody", entry.StringAt("body"));
  return made;
}

// The body of a request to Rekor v1: the whole envelope.
Result<Json> FirstGeneration(const Envelope& envelope, const Signature& signature) {
  Json one, signatures = Json::EmptyArray(), dsse;
  one.Set("keyid", "").Set("sig", codec::EncodeBase64(signature.bytes));
  signatures.Push(std::move(one));
  dsse.Set("payload", codec::EncodeBase64(envelope.payload));
  dsse.Set("payloadType", "application/vnd.in-toto+json").Set("signatures", std::move(signatures));
  Json content, spec, body;
  content.Set("envelope", codec::RenderJsonLine(dsse));
  content.Set("verifiers", Json::FromStrings({codec::EncodeBase64(VerifierPem(signature))}));
  spec.Set("proposedContent", std::move(content));
  body.Set("apiVersion", "0.0.1").Set("kind", "dsse").Set("spec", std::move(spec));
  return body;
}

// The body of a request to Rekor v2, whose only kind is hashedrekord 0.0.2: the hash of what was
// signed. Fails with kSetup for a key that it does not take.
Result<Json> SecondGeneration(const Envelope& envelope, const Signature& signature) {
  sigstore::Checked<sigstore::PublicKey> key =
      sigstore::PublicKey::FromSpki(signature.spki, sigstore::Reason::kBadKey);
  if (!key.ok() || key.value().kind() != sigstore::PublicKey::Kind::kP256) {
    return Error{Code::kSetup, "a log of Rekor v2 takes signatures by keys on P-256"};
  }
  Json raw, verifier, signed_by, request, body;
  raw.Set("rawBytes", codec::EncodeBase64(signature.certificate.empty() ? signature.spki
                                                                        : signature.certificate));
  verifier.Set(signature.certificate.empty() ? "publicKey" : "x509Certificate", std::move(raw));
  verifier.Set("keyDetails", "PKIX_ECDSA_P256_SHA_256");
  signed_by.Set("content", codec::EncodeBase64(signature.bytes));
  signed_by.Set("verifier", std::move(verifier));
  request.Set("digest", codec::EncodeBase64(
                            sigstore::Digest(sigstore::Hash::kSha256, envelope.signed_bytes)));
  request.Set("signature", std::move(signed_by));
  body.Set("hashedRekordRequestV002", std::move(request));
  return body;
}

}  // namespace

Result<std::string> Certify(net::HttpClient& http, const std::string& authority, EVP_PKEY* key,
                            const Secret& token, Deadline deadline) {
  const std::string who = "the certificate authority";
  Json credentials, body;
  credentials.Set("oidcIdentityToken", token.reveal());
  body.Set("credentials", std::move(credentials));
  body.Set("certificateSigningRequest", codec::EncodeBase64(CertificateRequest(key)));
  net::HttpRequest request;
  request.url = authority + "/api/v2/signingCert";
  request.bearer = &token;
  request.body = codec::RenderJsonLine(body);
  Result<std::string> posted = Post(http, who, request, "application/json", deadline);
  ::Wipe(request.body);
  const std::string text = TRY(std::move(posted));
  const Json json = TRY(codec::ParseJson(text).Context(who));
  const Json* made = json.Find("signedCertificateEmbeddedSct");
  const Json* chain = made == nullptr ? nullptr : made->Find("chain");
  const Json* list = chain == nullptr ? nullptr : chain->Find("certificates");
  if (list == nullptr || list->array() == nullptr || list->array()->empty() ||
      list->array()->front().string() == nullptr) {
    return Odd(who, "the response has no certificate that a log vouches for");
  }
  const std::optional<sigstore::PemBlock> leaf =
      sigstore::ParsePem(*list->array()->front().string());
  const CertificateOwner certificate = leaf ? sigstore::ParseCertificate(leaf->der) : nullptr;
  if (certificate == nullptr || sigstore::SpkiOf(certificate.get()) != SpkiOf(key)) {
    return Odd(who, "the certificate is for another key");
  }
  return leaf->der;
}

Result<Json> Log(net::HttpClient& http, const Service& log, const Envelope& envelope,
                 const Signature& signature, Deadline deadline) {
  const std::string who = "the transparency log";
  const bool first = log.version == 1;
  net::HttpRequest request;
  request.url = log.url + (first ? "/api/v1/log/entries" : "/api/v2/log/entries");
  const Json body =
      TRY(first ? FirstGeneration(envelope, signature) : SecondGeneration(envelope, signature));
  request.body = codec::RenderJsonLine(body);
  const std::string text = TRY(Post(http, who, request, "application/json", deadline));
  Json json = TRY(codec::ParseJson(text).Context(who));
  return first ? ConvertEntry(who, json) : Result<Json>(std::move(json));
}

Result<std::string> Stamp(net::HttpClient& http, const std::string& authority,
                          std::string_view signature, Deadline deadline) {
  const StampRequestOwner stamp(::TS_REQ_new());
  const ImprintOwner imprint(::TS_MSG_IMPRINT_new());
  const AlgorithmOwner algorithm(::X509_ALGOR_new());
  std::string digest = sigstore::Digest(sigstore::Hash::kSha256, signature);
  ENSURE(stamp != nullptr && imprint != nullptr && algorithm != nullptr);
  ENSURE(::X509_ALGOR_set0(algorithm.get(), ::OBJ_nid2obj(NID_sha256), V_ASN1_NULL, nullptr) == 1);
  ENSURE(::TS_REQ_set_version(stamp.get(), 1) == 1);
  ENSURE(::TS_MSG_IMPRINT_set_algo(imprint.get(), algorithm.get()) == 1);
  ENSURE(::TS_MSG_IMPRINT_set_msg(imprint.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                  static_cast<int>(digest.size())) == 1);
  ENSURE(::TS_REQ_set_msg_imprint(stamp.get(), imprint.get()) == 1);
  unsigned char* der = nullptr;
  const int size = ::i2d_TS_REQ(stamp.get(), &der);
  net::HttpRequest request;
  request.url = authority;
  request.body = sigstore::TakeDer(der, size);
  return Post(http, "the timestamp authority", request, "application/timestamp-query", deadline);
}

}  // namespace attest
