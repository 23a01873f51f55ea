// SPDX-License-Identifier: Apache-2.0
#include "gateway/certificate_authority.h"

#include <openssl/pem.h>

#include <array>
#include <utility>

#include "gateway/limits.h"
#include "policy/model/destination.h"

namespace gateway {
namespace {

// The clocks of a sandbox and of its host are the same, those of two virtual machines are not
// quite.
constexpr long kValidBefore_s = 60 * 60;
constexpr long kLeafValid_s = 24 * 60 * 60;
constexpr long kAuthorityValid_s = 7 * kLeafValid_s;  // Outlives every leaf of a run.

Status SetSubject(X509_NAME* name, const char* field, const std::string& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(value.data());
  int size = static_cast<int>(value.size());
  if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, bytes, size, -1, 0) != 1) {
    return SslFailed("naming a certificate");
  }
  return Ok();
}

Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  ExtensionOwner extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return SslFailed("extending a certificate");
  }
  return Ok();
}

// Version 3, a random serial number, a validity from an hour ago.
Result<CertificateOwner> NewCertificate(EVP_PKEY* key, long valid_s) {
  CertificateOwner certificate(X509_new());
  std::unique_ptr<BIGNUM, FreeWith<BN_free>> serial(BN_new());
  // 127 bits with the top one set: never zero, never negative (RFC 5280, 4.1.2.2).
  bool made = certificate && serial && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
              BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) &&
              X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kValidBefore_s) &&
              X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_s) &&
              X509_set_pubkey(certificate.get(), key) == 1;
  if (!made) return SslFailed("making a certificate");
  return certificate;
}

// The same certificate, with its encoding at hand: one that was made here is encoded again for
// every handshake, one that was read is not.
Result<CertificateOwner> WithEncoding(const CertificateOwner& certificate) {
  unsigned char* bytes = nullptr;
  int size = i2d_X509(certificate.get(), &bytes);
  if (size <= 0) return SslFailed("encoding a certificate");
  const unsigned char* at = bytes;
  CertificateOwner read(d2i_X509(nullptr, &at, size));
  OPENSSL_free(bytes);
  if (!read) return SslFailed("encoding a certificate");
  return read;
}

Result<std::string> RenderPem(X509* certificate) {
  BioOwner out(BIO_new(BIO_s_mem()));
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1) return SslFailed("writing PEM");
  char* bytes = nullptr;
  long size = BIO_get_mem_data(out.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// HTTP/2 for clients that can speak it, as most servers choose.
int SelectProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* in, unsigned int in_size, void*) {
  static constexpr unsigned char kBoth[] = "\x02h2\x08http/1.1";
  unsigned char* chosen = nullptr;
  int found = SSL_select_next_proto(&chosen, out_size, kBoth, sizeof kBoth - 1, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

constexpr char kTls13Ciphers[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
// The keys are elliptic: to look for a way to sign with another is lost work.
constexpr char kSignatures[] = "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512";

// Makes the context that all servers of one host share, so that a connection need not be given it
// again. The leaf is sent alone: a client that trusts its issuer, a root, has that certificate (RFC
// 8446, 4.4.2).
Result<SslContextOwner> NewServerContext(X509* leaf, EVP_PKEY* key) {
  SslContextOwner owner(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = owner.get();
  bool made = context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
              // The client is on this machine: the cheapest of the three is as good as the others.
              SSL_CTX_set_ciphersuites(context, kTls13Ciphers) == 1 &&
              SSL_CTX_set1_sigalgs_list(context, kSignatures) == 1 &&
              SSL_CTX_use_certificate(context, leaf) == 1 &&
              SSL_CTX_use_PrivateKey(context, key) == 1;
  if (!made) return SslFailed("making a TLS server");
  // Sessions are resumed by tickets, under keys that die with this context: nothing is kept here,
  // and none carries over between hosts.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);  // Stream::OfferResumption gives one later.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_alpn_select_cb(context, SelectProtocol, nullptr);
  return owner;
}

}  // namespace

Result<CertificateAuthority> CertificateAuthority::Create() {
  CertificateAuthority made;
  made.key_.reset(EVP_EC_gen("P-256"));
  made.leaf_key_.reset(EVP_EC_gen("P-256"));
  if (!made.key_ || !made.leaf_key_) return SslFailed("making a key");
  made.certificate_ = TRY(NewCertificate(made.key_.get(), kAuthorityValid_s));
  X509* certificate = made.certificate_.get();
  X509_NAME* name = X509_get_subject_name(certificate);
  TRY(SetSubject(name, "O", "OpenShell"));
  TRY(SetSubject(name, "CN", "OpenShell Sandbox CA"));
  if (X509_set_issuer_name(certificate, name) != 1) return SslFailed("naming a certificate");
  TRY(AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  TRY(AddExtension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign"));
  TRY(AddExtension(certificate, certificate, NID_subject_key_identifier, "hash"));
  if (X509_sign(certificate, made.key_.get(), EVP_sha256()) == 0) return SslFailed("signing");
  made.certificate_ = TRY(WithEncoding(made.certificate_));
  certificate = made.certificate_.get();
  made.pem_ = TRY(RenderPem(certificate));
  return made;
}

Result<CertificateOwner> CertificateAuthority::MakeLeaf(const std::string& host) {
  CertificateOwner owner = TRY(NewCertificate(leaf_key_.get(), kLeafValid_s));
  X509* leaf = owner.get();
  // RFC 5280: a common name has at most 64 characters. Clients look at the alternative name only.
  if (host.size() <= 64) TRY(SetSubject(X509_get_subject_name(leaf), "CN", host));
  X509_NAME* issuer = X509_get_subject_name(certificate_.get());
  if (X509_set_issuer_name(leaf, issuer) != 1) return SslFailed("naming a certificate");
  X509* authority = certificate_.get();
  bool literal = policy::ParseAddress(host).has_value();
  TRY(AddExtension(leaf, authority, NID_basic_constraints, "critical,CA:FALSE"));
  TRY(AddExtension(leaf, authority, NID_key_usage, "critical,digitalSignature"));
  TRY(AddExtension(leaf, authority, NID_ext_key_usage, "serverAuth"));
  TRY(AddExtension(leaf, authority, NID_subject_key_identifier, "hash"));
  TRY(AddExtension(leaf, authority, NID_authority_key_identifier, "keyid:always"));
  TRY(AddExtension(leaf, authority, NID_subject_alt_name, (literal ? "IP:" : "DNS:") + host));
  if (X509_sign(leaf, key_.get(), EVP_sha256()) == 0) return SslFailed("signing");
  return WithEncoding(owner);
}

Result<SSL_CTX*> CertificateAuthority::ContextFor(const std::string& host) {
  auto found = contexts_.find(host);
  if (found != contexts_.end()) return found->second.get();
  CertificateOwner leaf = TRY(MakeLeaf(host));
  SslContextOwner context = TRY(NewServerContext(leaf.get(), leaf_key_.get()));
  if (contexts_.size() >= kLeafCertificatesMax) contexts_.clear();
  return contexts_.emplace(host, std::move(context)).first->second.get();
}

Result<SslOwner> CertificateAuthority::NewServer(const std::string& host) {
  SSL_CTX* context = TRY(ContextFor(host));
  SslOwner ssl(SSL_new(context));
  if (!ssl) return SslFailed("making a TLS server");
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace gateway
