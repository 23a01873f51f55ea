// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/public_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>

#include <array>
#include <optional>

#include "sigstore/trust/certificate.h"

namespace sigstore {
namespace {

constexpr int kRsaBitsMin = 2048;

const EVP_MD* DigestAlgorithm(Hash hash) {
  switch (hash) {
    case Hash::kSha256:
      return ::EVP_sha256();
    case Hash::kSha384:
      return ::EVP_sha384();
    case Hash::kSha512:
      return ::EVP_sha512();
  }
  return nullptr;
}

std::optional<PublicKey::Kind> KindOf(const EVP_PKEY* key) {
  switch (::EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
      return PublicKey::Kind::kEd25519;
    case EVP_PKEY_RSA:
      if (::EVP_PKEY_get_bits(key) < kRsaBitsMin) return std::nullopt;
      return PublicKey::Kind::kRsa;
    case EVP_PKEY_EC:
      break;
    default:
      return std::nullopt;
  }
  std::array<char, 32> name{};
  size_t size = 0;
  if (::EVP_PKEY_get_group_name(key, name.data(), name.size(), &size) != 1) return std::nullopt;
  std::string_view curve(name.data(), size);
  if (curve == SN_X9_62_prime256v1) return PublicKey::Kind::kP256;
  if (curve == SN_secp384r1) return PublicKey::Kind::kP384;
  if (curve == SN_secp521r1) return PublicKey::Kind::kP521;
  return std::nullopt;
}

// The bytes before the key itself in the SPKI of the two kinds that logs have. The library takes as
// long as for a signature to find out what a key is.
constexpr std::string_view kP256Spki(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
    "\x03\x42\x00",
    26);
constexpr std::string_view kEd25519Spki("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr size_t kP256PointSize = 65;
constexpr size_t kEd25519KeySize = 32;

// The library sees to it that the point is one of the curve.
KeyOwner ReadP256(std::string_view point) {
  KeyContextOwner context(::EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  char curve[] = SN_X9_62_prime256v1;
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve, 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, const_cast<char*>(point.data()),
                                        point.size()),
      OSSL_PARAM_construct_end()};
  EVP_PKEY* key = nullptr;
  if (context == nullptr || ::EVP_PKEY_fromdata_init(context.get()) != 1 ||
      ::EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    return nullptr;
  }
  return KeyOwner(key);
}

KeyOwner ReadSpki(std::string_view der) {
  if (der.starts_with(kP256Spki) && der.size() == kP256Spki.size() + kP256PointSize) {
    return ReadP256(der.substr(kP256Spki.size()));
  }
  if (der.starts_with(kEd25519Spki) && der.size() == kEd25519Spki.size() + kEd25519KeySize) {
    return KeyOwner(::EVP_PKEY_new_raw_public_key(
        EVP_PKEY_ED25519, nullptr, Bytes(der.substr(kEd25519Spki.size())), kEd25519KeySize));
  }
  const unsigned char* at = Bytes(der);
  KeyOwner key(::d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  if (at != Bytes(der) + der.size()) key.reset();  // Something behind it.
  return key;
}

// Says what stands in its place, as far as it shows: people have several files with a key in them.
std::string NotAPublicKey(std::string_view text, const std::optional<PemBlock>& block) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return "the file of the key is empty";
  if (text.find("PRIVATE KEY-----") != std::string_view::npos) {
    return "a private key; the matching public key is needed";
  }
  if (block && block->label == "CERTIFICATE") return "a certificate, not a public key";
  if (!block && text.starts_with('\x30')) return "DER, not a public key in PEM";
  return "not a public key in PEM";
}

}  // namespace

std::string Digest(Hash hash, std::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  ENSURE(::EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                      &size, DigestAlgorithm(hash), nullptr) == 1);
  digest.resize(size);
  return digest;
}

Checked<PublicKey> PublicKey::CheckKind(KeyOwner key, Reason malformed, std::string spki) {
  if (key == nullptr) return Rejection{malformed, "not a public key"};
  std::optional<Kind> kind = KindOf(key.get());
  if (!kind) {
    return Rejection{
        Reason::kKeyAlgorithm,
        "the key is neither ECDSA (P-256, P-384, P-521), Ed25519 nor RSA of at least 2048 bits"};
  }
  return PublicKey(std::move(key), *kind, std::move(spki));
}

Checked<PublicKey> PublicKey::FromSpki(std::string_view der, Reason malformed) {
  return CheckKind(ReadSpki(der), malformed, std::string(der));
}

Checked<PublicKey> PublicKey::FromPkcs1(std::string_view der, Reason malformed) {
  const unsigned char* at = Bytes(der);
  KeyOwner key(::d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, static_cast<long>(der.size())));
  if (at != Bytes(der) + der.size()) key.reset();
  std::string spki;
  unsigned char* made = nullptr;
  int size = key ? ::i2d_PUBKEY(key.get(), &made) : 0;
  if (size > 0) spki.assign(reinterpret_cast<char*>(made), static_cast<size_t>(size));
  ::OPENSSL_free(made);
  return CheckKind(std::move(key), malformed, std::move(spki));
}

Checked<PublicKey> PublicKey::FromPem(std::string_view pem, Reason malformed) {
  std::optional<PemBlock> block = ParsePem(pem);
  if (block && block->label == "PUBLIC KEY") return FromSpki(block->der, malformed);
  if (block && block->label == "RSA PUBLIC KEY") return FromPkcs1(block->der, malformed);
  return Rejection{malformed, NotAPublicKey(pem, block)};
}

Checked<PublicKey> PublicKey::FromCertificate(const X509* certificate) {
  KeyOwner key(::X509_get_pubkey(const_cast<X509*>(certificate)));
  return CheckKind(std::move(key), Reason::kBadCertificate, SpkiOf(certificate));
}

std::string PublicKey::Raw() const {
  std::string raw(32, '\0');
  size_t size = raw.size();
  ENSURE(::EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(raw.data()),
                                       &size) == 1);
  return raw;
}

bool PublicKey::Verifies(Hash hash, std::string_view message, std::string_view signature) const {
  if (kind_ != Kind::kEd25519) return VerifiesDigest(hash, Digest(hash, message), signature);
  DigestContextOwner context(::EVP_MD_CTX_new());
  return context != nullptr &&
         ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
         ::EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                            message.size()) == 1;
}

bool PublicKey::VerifiesDigest(Hash hash, std::string_view digest,
                               std::string_view signature) const {
  if (kind_ == Kind::kEd25519) return false;
  KeyContextOwner context(::EVP_PKEY_CTX_new(key_.get(), nullptr));
  if (context == nullptr || ::EVP_PKEY_verify_init(context.get()) != 1) return false;
  if (kind_ == Kind::kRsa &&
      ::EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_PADDING) != 1) {
    return false;
  }
  return ::EVP_PKEY_CTX_set_signature_md(context.get(), DigestAlgorithm(hash)) == 1 &&
         ::EVP_PKEY_verify(context.get(), Bytes(signature), signature.size(), Bytes(digest),
                           digest.size()) == 1;
}

std::span<const Hash> HashesFor(PublicKey::Kind kind) {
  static constexpr std::array<Hash, 1> kDefault = {Hash::kSha256};
  static constexpr std::array<Hash, 2> kP384 = {Hash::kSha384, Hash::kSha256};
  static constexpr std::array<Hash, 2> kP521 = {Hash::kSha512, Hash::kSha256};
  if (kind == PublicKey::Kind::kP384) return kP384;
  if (kind == PublicKey::Kind::kP521) return kP521;
  return kDefault;
}

}  // namespace sigstore
