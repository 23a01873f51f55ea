// SPDX-License-Identifier: Apache-2.0
#include "attest/signer.h"

#include <time.h>

#include <chrono>
#include <utility>
#include <vector>

#include "attest/key.h"
#include "attest/services.h"
#include "attest/signing_config.h"
#include "base/named_path.h"
#include "base/sys.h"
#include "codec/data/json.h"
#include "codec/text/base64.h"
#include "net/retry.h"
#include "sigstore/bundle.h"
#include "sigstore/fulcio_identity.h"
#include "sigstore/trust/certificate.h"
#include "sigstore/verify.h"

namespace attest {
namespace {

using codec::Json;

constexpr char kTokenVariable[] = "SIGSTORE_ID_TOKEN";
constexpr char kRequestUrl[] = "ACTIONS_ID_TOKEN_REQUEST_URL";
constexpr char kRequestToken[] = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
constexpr char kPayloadType[] = "application/vnd.in-toto+json";
constexpr char kBundleType[] = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr size_t kKeyBytesMax = size_t{64} << 10;
constexpr size_t kConfigBytesMax = size_t{1} << 20;
constexpr std::chrono::minutes kSigningMax{2};

// A file in a checkout is a pull request's: it would decide where the job's identity is sent.
Result<std::string> ReadFile(const std::string& path, size_t bytes_max, const char* what,
                             bool in_ci) {
  if (in_ci && FindCheckoutPath(path)) {
    return Error{
        Code::kRefused,
        std::string(what) + " is in the checkout, whose files a pull request can change: " + path,
        "a file that an earlier step of the job makes elsewhere"};
  }
  return ReadNamedFile(path, bytes_max).Context(std::string("reading ") + what);
}

Status CheckTogether(const Wanted& wanted) {
  if (!wanted.attest_key.empty() && !wanted.attest_command.empty()) {
    return Error{Code::kUsage, "--attest-key and --attest-command are mutually exclusive"};
  }
  if (wanted.attest_command.empty() != wanted.attest_public_key.empty()) {
    return Error{Code::kUsage, "--attest-command and --attest-public-key need each other"};
  }
  return Ok();
}

// The text of a variable that no other process is to find.
Result<UnforkedBytes> Keep(const char* variable) {
  std::optional<std::string> value = sys::Environment(variable);
  const SecretString text = value ? SecretString(std::move(*value)) : SecretString();
  return UnforkedBytes::Copy(text);
}

bool IsSet(const char* variable) {
  std::optional<std::string> value = sys::Environment(variable);
  const bool set = value && !value->empty();
  if (value) ::Wipe(*value);
  return set;
}

// Asks GitHub for the job's identity.
Result<Secret> AskForIdentity(net::HttpClient& http, const std::string& url, const Secret& right,
                              Deadline deadline) {
  net::HttpRequest request;
  request.url = url + (url.find('?') == std::string::npos ? "?" : "&") + "audience=sigstore";
  request.bearer = &right;
  net::HttpResponse response =
      TRY(net::SendWithRetries(http, request, {}, deadline).Context("asking for the identity"));
  if (response.status != 200) {
    return Error{Code::kSetup, "asking for the job's identity: the response is " +
                                   std::to_string(response.status)};
  }
  const Json json = TRY(codec::ParseJson(response.body).Context("the job's identity"));
  Secret token(json.StringAt("value"));
  ::Wipe(response.body);
  if (token.empty()) return Error{Code::kSetup, "the job's identity is empty"};
  return token;
}

Json RawBytes(const std::string& bytes) {
  Json json;
  json.Set("rawBytes", codec::EncodeBase64(bytes));
  return json;
}

// What a key is called in a bundle: sigstore-go and cosign take the hash of its SPKI.
std::string HintOf(const Signature& signature) {
  return codec::EncodeBase64(sigstore::Digest(sigstore::Hash::kSha256, signature.spki));
}

Json DescribeEnvelope(const Envelope& envelope, const Signature& signature) {
  Json one, signatures = Json::EmptyArray(), json;
  one.Set("sig", codec::EncodeBase64(signature.bytes));
  one.Set("keyid", signature.certificate.empty() ? HintOf(signature) : "");
  signatures.Push(std::move(one));
  json.Set("payload", codec::EncodeBase64(envelope.payload)).Set("payloadType", kPayloadType);
  json.Set("signatures", std::move(signatures));
  return json;
}

// sigstore_bundle.proto, v0.3: the leaf alone, no root.
Result<Json> MakeBundle(net::HttpClient& http, const SigningServices& services,
                        const Envelope& envelope, const Signature& signature, Deadline deadline) {
  Json entries = Json::EmptyArray(), stamps = Json::EmptyArray();
  bool needs_time = false;
  for (const Service& log : services.logs) {
    entries.Push(TRY(Log(http, log, envelope, signature, deadline)));
    needs_time = needs_time || log.version > 1;
  }
  for (const std::string& authority : services.timestamp_authorities) {
    const std::string response = TRY(Stamp(http, authority, signature.bytes, deadline));
    Json stamp;
    stamp.Set("signedTimestamp", codec::EncodeBase64(response));
    stamps.Push(std::move(stamp));
  }
  if (needs_time && stamps.array()->empty()) {
    return Error{Code::kSetup,
                 "the signing configuration has a log of Rekor v2 and no timestamp authority"};
  }
  Json material, data, hint, bundle;
  if (signature.certificate.empty()) {
    hint.Set("hint", HintOf(signature));
    material.Set("publicKey", std::move(hint));
  } else {
    material.Set("certificate", RawBytes(signature.certificate));
  }
  material.Set("tlogEntries", std::move(entries));
  data.Set("rfc3161Timestamps", std::move(stamps));
  material.Set("timestampVerificationData", std::move(data));
  bundle.Set("mediaType", kBundleType).Set("verificationMaterial", std::move(material));
  bundle.Set("dsseEnvelope", DescribeEnvelope(envelope, signature));
  return bundle;
}

// A bundle that does not verify is worth nothing. Any signer is accepted here.
Status Verify(const std::string& text, std::string_view sha256, const Signature& signature,
              const std::string& key_pem, bool logged, const sigstore::TrustedRoot& root) {
  sigstore::VerifyOptions options;
  options.any_predicate = true;
  options.require_log = logged;
  if (signature.certificate.empty()) {
    options.signer = sigstore::KeyRule{key_pem, logged};
  } else {
    const CertificateOwner leaf = sigstore::ParseCertificate(signature.certificate);
    const sigstore::Checked<sigstore::FulcioIdentity> holder = sigstore::ReadIdentity(leaf.get());
    if (!holder.ok()) return Error{Code::kRefused, sigstore::Render(holder.error())};
    options.signer = sigstore::IdentityRule{holder.value().issuer, "**", {}};
  }
  const sigstore::Verdict verdict = sigstore::VerifyBundle(text, sha256, options, &root);
  if (std::holds_alternative<sigstore::Verified>(verdict)) return Ok();
  return Error{Code::kRefused,
               "the statement's own signature does not verify: " +
                   sigstore::Render(std::get<sigstore::Rejection>(verdict)),
               "--trusted-root FILE"};
}

}  // namespace

Result<Signer> Signer::Prepare(const Wanted& wanted, SigningPlace place) {
  TRY(CheckTogether(wanted));
  Signer signer;
  signer.http_ = std::move(place.http);
  if (!wanted.signing_config.empty()) {
    signer.signing_config_ = TRY(
        ReadFile(wanted.signing_config, kConfigBytesMax, "the signing configuration", place.in_ci));
    TRY(ChooseServices(signer.signing_config_, {::time(nullptr), 0})
            .Context(wanted.signing_config));
  }
  if (!place.trusted_root.empty()) {
    const std::string text =
        TRY(ReadFile(place.trusted_root, kConfigBytesMax, "the trusted root", place.in_ci));
    signer.root_ = TRY(sigstore::ParseTrustedRoot(text).Context(place.trusted_root));
  }
  if (!wanted.attest_key.empty()) {
    const SecretString pem =
        TRY(ReadFile(wanted.attest_key, kKeyBytesMax, "the signing key", place.in_ci));
    TRY(ParsePrivateKey(pem).Context(wanted.attest_key));
    signer.secret_ = TRY(UnforkedBytes::Copy(pem));
    signer.kind_ = Kind::kKey;
  } else if (!wanted.attest_command.empty()) {
    signer.command_ = wanted.attest_command;
    signer.public_key_ =
        TRY(ReadFile(wanted.attest_public_key, kKeyBytesMax, "the public key", place.in_ci));
    TRY(sigstore::CheckKey(signer.public_key_).Context(wanted.attest_public_key));
    signer.kind_ = Kind::kCommand;
  } else if (IsSet(kTokenVariable)) {
    signer.secret_ = TRY(Keep(kTokenVariable));
    signer.kind_ = Kind::kIdentity;
  } else if (IsSet(kRequestUrl) && IsSet(kRequestToken)) {
    signer.secret_ = TRY(Keep(kRequestToken));
    signer.identity_url_ = sys::Environment(kRequestUrl).value_or("");
    signer.kind_ = Kind::kIdentity;
  }
  if (signer.kind_ == Kind::kIdentity && signer.signing_config_.empty()) {
    signer.signing_config_ = PublicSigningConfig();
  }
  return signer;
}

Result<std::string> Signer::Sign(std::string_view statement, std::string_view sha256) {
  const Deadline deadline = Deadline::After(kSigningMax);
  net::HttpClient http = TRY(net::HttpClient::Create(http_));
  SigningServices services;
  if (!signing_config_.empty()) {
    services = TRY(ChooseServices(signing_config_, {::time(nullptr), 0}));
  }
  const Envelope envelope{std::string(statement),
                          sigstore::PreAuthenticationEncoding(kPayloadType, statement)};
  Signature signature;
  if (kind_ == Kind::kCommand) {
    signature = TRY(SignByCommand(command_, public_key_, envelope.signed_bytes, deadline));
  } else {
    KeyOwner key = TRY(kind_ == Kind::kKey ? ParsePrivateKey(secret_.reveal()) : MakeKey());
    signature.spki = SpkiOf(key.get());
    if (kind_ == Kind::kIdentity) {
      if (services.certificate_authority.empty()) {
        return Error{Code::kSetup, "the signing configuration has no certificate authority"};
      }
      Secret token(secret_.reveal());
      if (!identity_url_.empty()) {
        token = TRY(AskForIdentity(http, identity_url_, token, deadline));
      }
      signature.certificate =
          TRY(Certify(http, services.certificate_authority, key.get(), token, deadline));
    }
    signature.bytes = TRY(attest::Sign(key.get(), envelope.signed_bytes));
  }
  const Json bundle = TRY(MakeBundle(http, services, envelope, signature, deadline));
  std::string text = codec::RenderJsonLine(bundle) + "\n";
  TRY(Verify(text, sha256, signature, sigstore::RenderPem({"PUBLIC KEY", signature.spki}),
             !services.logs.empty(), root_ ? *root_ : sigstore::EmbeddedTrustedRoot()));
  return text;
}

}  // namespace attest
