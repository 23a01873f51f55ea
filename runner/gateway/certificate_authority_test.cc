// SPDX-License-Identifier: Apache-2.0
#include "gateway/certificate_authority.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <catch2/catch.hpp>

#include "gateway/limits.h"

namespace gateway {
namespace {

CertificateOwner ParsePem(const std::string& pem) {
  BioOwner in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return CertificateOwner(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

std::string NameOf(X509* certificate) {
  char text[256];
  X509_NAME_oneline(X509_get_subject_name(certificate), text, sizeof text);
  return text;
}

SslContextOwner NewClientContext(int version) {
  SslContextOwner context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set1_groups_list(context.get(), "X25519:P-256");  // In TLS 1.2 also of certificates.
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  return context;
}

// A client and a server of this process, joined.
struct Pair {
  SslOwner client;
  SslOwner server;

  Pair(CertificateAuthority& authority, SSL_CTX* context)
      : client(SSL_new(context)), server(authority.NewServer("h.example").value()) {
    BIO* one = nullptr;
    BIO* other = nullptr;
    REQUIRE(BIO_new_bio_pair(&one, 0, &other, 0) == 1);
    SSL_set_bio(client.get(), one, one);
    SSL_set_bio(server.get(), other, other);
    SSL_set_connect_state(client.get());
  }

  bool Shake() {
    int done = 0;
    for (int i = 0; i < 10 && done != 2; ++i) {
      done = (SSL_do_handshake(client.get()) == 1) + (SSL_do_handshake(server.get()) == 1);
    }
    return done == 2;
  }
};

// The key its peer has shown in the handshake.
std::string KeyShownTo(SSL* ssl) {
  EVP_PKEY* shown = nullptr;
  if (SSL_get_peer_tmp_key(ssl, &shown) != 1) return "";
  KeyOwner key(shown);
  unsigned char* bytes = nullptr;
  size_t size = EVP_PKEY_get1_encoded_public_key(key.get(), &bytes);
  std::string text(reinterpret_cast<char*>(bytes), size);
  OPENSSL_free(bytes);
  return text;
}

TEST_CASE("The authority is a certificate authority with OpenShell's name") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  CertificateOwner certificate = ParsePem(authority.pem());
  REQUIRE(certificate);
  CHECK(NameOf(certificate.get()) == "/O=OpenShell/CN=OpenShell Sandbox CA");
  CHECK(X509_check_ca(certificate.get()) == 1);
  CHECK(X509_get_pathlen(certificate.get()) == 0);
  CHECK((X509_get_key_usage(certificate.get()) & KU_KEY_CERT_SIGN) != 0);
  CHECK(X509_cmp_current_time(X509_get0_notBefore(certificate.get())) < 0);
  CHECK(X509_cmp_current_time(X509_get0_notAfter(certificate.get())) > 0);
}

TEST_CASE("Two runs have two authorities") {
  CHECK(CertificateAuthority::Create().value().pem() !=
        CertificateAuthority::Create().value().pem());
}

TEST_CASE("A server's certificate is the authority's and names its host alone") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  CertificateOwner issuer = ParsePem(authority.pem());
  for (const char* host : {"api.example.com", "a_b.example"}) {
    SslOwner server = authority.NewServer(host).value();
    X509* leaf = SSL_get_certificate(server.get());
    REQUIRE(leaf != nullptr);
    CHECK(X509_verify(leaf, X509_get0_pubkey(issuer.get())) == 1);
    CHECK(X509_check_host(leaf, host, 0, 0, nullptr) == 1);
    CHECK(X509_check_host(leaf, "other.example.com", 0, 0, nullptr) == 0);
    CHECK(X509_check_ca(leaf) == 0);
    CHECK((X509_get_extended_key_usage(leaf) & XKU_SSL_SERVER) != 0);
  }
}

TEST_CASE("A server at an address is named by the address") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  for (const char* address : {"10.1.2.3", "2001:db8::1"}) {
    SslOwner server = authority.NewServer(address).value();
    CHECK(X509_check_ip_asc(SSL_get_certificate(server.get()), address, 0) == 1);
  }
}

TEST_CASE("A name too long for a common name is still served") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  std::string host = std::string(60, 'a') + "." + std::string(60, 'b') + ".example";
  SslOwner server = authority.NewServer(host).value();
  CHECK(X509_check_host(SSL_get_certificate(server.get()), host.c_str(), 0, 0, nullptr) == 1);
}

TEST_CASE("A host's certificate is made once, and the store of them is bounded") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  SslOwner first = authority.NewServer("h.example").value();
  SslOwner again = authority.NewServer("h.example").value();
  CHECK(SSL_get_certificate(first.get()) == SSL_get_certificate(again.get()));
  for (size_t i = 0; i < kLeafCertificatesMax; ++i) {
    REQUIRE(authority.NewServer("h" + std::to_string(i) + ".example").ok());
  }
  SslOwner later = authority.NewServer("h.example").value();
  CHECK(SSL_get_certificate(first.get()) != SSL_get_certificate(later.get()));
}

TEST_CASE("Each connection is given a key pair of its own") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  for (int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    SslContextOwner context = NewClientContext(version);
    Pair first(authority, context.get());
    Pair second(authority, context.get());
    REQUIRE(first.Shake());
    REQUIRE(second.Shake());
    REQUIRE(KeyShownTo(first.client.get()).size() == 32);
    CHECK(KeyShownTo(first.client.get()) != KeyShownTo(second.client.get()));
  }
}

}  // namespace
}  // namespace gateway
