// SPDX-License-Identifier: Apache-2.0
#include "sigstore/certificate.h"

#include <openssl/pem.h>
#include <time.h>

namespace sigstore {
namespace {

// 112 bits: no SHA-1, no RSA below 2048.
constexpr int kSecurityLevel = 2;
constexpr int kDepthMax = 8;

std::optional<Instant> InstantOf(const ASN1_TIME* time) {
  tm parts{};
  if (::ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return Instant{::timegm(&parts)};
}

// What the library encoded into memory of its own.
std::string Take(unsigned char* der, int size) {
  ENSURE(size > 0);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  ::OPENSSL_free(der);
  return bytes;
}

}  // namespace

CertificateOwner ParseCertificate(std::string_view der) {
  const unsigned char* at = Bytes(der);
  CertificateOwner certificate(::d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (at != Bytes(der) + der.size()) certificate.reset();
  return certificate;
}

std::optional<PemBlock> ParsePem(std::string_view pem) {
  BioOwner bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (bio == nullptr || ::PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) {
    return std::nullopt;
  }
  PemBlock block{name, std::string(reinterpret_cast<char*>(data), static_cast<size_t>(size))};
  bool bare = header[0] == '\0';
  ::OPENSSL_free(name);
  ::OPENSSL_free(header);
  ::OPENSSL_free(data);
  if (!bare) return std::nullopt;
  return block;
}

std::string DerOf(const X509* certificate) {
  unsigned char* der = nullptr;
  int size = ::i2d_X509(certificate, &der);
  return Take(der, size);
}

std::string SpkiOf(const X509* certificate) {
  unsigned char* der = nullptr;
  int size = ::i2d_X509_PUBKEY(::X509_get_X509_PUBKEY(certificate), &der);
  return Take(der, size);
}

bool IsSelfIssued(const X509* certificate) {
  return ::X509_NAME_cmp(::X509_get_subject_name(certificate),
                         ::X509_get_issuer_name(certificate)) == 0;
}

bool ValidAt(const X509* certificate, const Instant& at) {
  std::optional<Instant> start = InstantOf(::X509_get0_notBefore(certificate));
  std::optional<Instant> end = InstantOf(::X509_get0_notAfter(certificate));
  return start && end && Interval{*start, end}.Contains(at);
}

bool Permits(const X509* certificate, int use, bool authority) {
  int critical = -1;
  UsesOwner uses(static_cast<EXTENDED_KEY_USAGE*>(
      ::X509_get_ext_d2i(certificate, NID_ext_key_usage, &critical, nullptr)));
  if (uses == nullptr) return critical == -1;  // Not there, rather than unreadable or twice.
  for (int i = 0; i < sk_ASN1_OBJECT_num(uses.get()); ++i) {
    int found = ::OBJ_obj2nid(sk_ASN1_OBJECT_value(uses.get(), i));
    if (found == use || (authority && found == NID_anyExtendedKeyUsage)) return true;
  }
  return false;
}

void SetRules(X509_VERIFY_PARAM* rules) {
  ::X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
  ::X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  ::X509_VERIFY_PARAM_set_depth(rules, kDepthMax);
}

Chain PathOf(X509_STORE_CTX* context) {
  STACK_OF(X509)* path = ::X509_STORE_CTX_get0_chain(context);
  Chain chain;
  for (int i = 0; i < sk_X509_num(path); ++i) {
    X509* certificate = sk_X509_value(path, i);
    ENSURE(::X509_up_ref(certificate) == 1);
    chain.emplace_back(certificate);
  }
  return chain;
}

Check CheckAuthorities(const Chain& chain, int use) {
  for (size_t i = 1; i + 1 < chain.size(); ++i) {
    if (!Permits(chain[i].get(), use, true)) {
      return Rejection{Reason::kEku, "an authority on the path may not issue for this use"};
    }
  }
  return Pass();
}

Checked<Chain> BuildChain(X509* leaf, const Chain& intermediates, X509* anchor, int use) {
  StoreOwner store(::X509_STORE_new());
  StoreContextOwner context(::X509_STORE_CTX_new());
  BorrowedStack untrusted(sk_X509_new_null());
  ENSURE(store != nullptr && context != nullptr && untrusted != nullptr);
  ENSURE(::X509_STORE_add_cert(store.get(), anchor) == 1);
  for (const CertificateOwner& one : intermediates) {
    ENSURE(sk_X509_push(untrusted.get(), one.get()) > 0);
  }
  ENSURE(::X509_STORE_CTX_init(context.get(), store.get(), leaf, untrusted.get()) == 1);
  SetRules(::X509_STORE_CTX_get0_param(context.get()));
  if (::X509_verify_cert(context.get()) != 1) {
    int error = ::X509_STORE_CTX_get_error(context.get());
    return Rejection{Reason::kChain, std::string("no path to a trusted authority: ") +
                                         ::X509_verify_cert_error_string(error)};
  }
  Chain chain = PathOf(context.get());
  TRY(CheckAuthorities(chain, use));
  return chain;
}

const X509* FirstInvalid(const Chain& chain, const Instant& at) {
  for (const CertificateOwner& certificate : chain) {
    if (!ValidAt(certificate.get(), at)) return certificate.get();
  }
  return nullptr;
}

}  // namespace sigstore
