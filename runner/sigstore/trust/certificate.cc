// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/certificate.h"

#include <openssl/pem.h>
#include <time.h>

namespace sigstore {
namespace {

std::optional<Instant> InstantOf(const ASN1_TIME* time) {
  tm parts{};
  if (::ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return Instant{::timegm(&parts)};
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

std::string RenderPem(const PemBlock& block) {
  const BioOwner bio(::BIO_new(::BIO_s_mem()));
  ENSURE(::PEM_write_bio(bio.get(), block.label.c_str(), "", Bytes(block.der),
                         static_cast<long>(block.der.size())) > 0);
  return TextOf(bio.get());
}

std::string DerOf(const X509* certificate) {
  unsigned char* der = nullptr;
  int size = ::i2d_X509(certificate, &der);
  return TakeDer(der, size);
}

std::string SpkiOf(const X509* certificate) {
  unsigned char* der = nullptr;
  int size = ::i2d_X509_PUBKEY(::X509_get_X509_PUBKEY(certificate), &der);
  return TakeDer(der, size);
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

}  // namespace sigstore
