// SPDX-License-Identifier: Apache-2.0
#include "gateway/key_exchange.h"

#include <openssl/evp.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

#include "base/free_with.h"
#include "gateway/certificate_authority.h"
#include "gateway/limits.h"

namespace gateway {
namespace {

using KeyContextOwner = std::unique_ptr<EVP_PKEY_CTX, FreeWith<EVP_PKEY_CTX_free>>;

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

void WaitForAnotherSecond() { std::this_thread::sleep_for(kKeyPairAge + milliseconds(20)); }

TEST_CASE("The handshakes of a second share a server's key, and those of the next have another") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  for (int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    SslContextOwner context = NewClientContext(version);
    // Two seconds can touch between two handshakes, hardly between three times two.
    bool shared = false;
    std::string last;
    for (int i = 0; i < 3 && !shared; ++i) {
      Pair first(authority, context.get());
      Pair second(authority, context.get());
      REQUIRE(first.Shake());
      WipeStaleKeyPair();
      REQUIRE(second.Shake());
      last = KeyShownTo(second.client.get());
      REQUIRE(last.size() == 32);
      shared = KeyShownTo(first.client.get()) == last;
    }
    CHECK(shared);
    WaitForAnotherSecond();
    Pair later(authority, context.get());
    REQUIRE(later.Shake());
    CHECK(KeyShownTo(later.client.get()) != last);
  }
}

TEST_CASE("A client of this process has a key of its own for each connection") {
  CertificateAuthority authority = CertificateAuthority::Create().value();
  SslContextOwner context = NewClientContext(TLS1_3_VERSION);
  Pair first(authority, context.get());
  Pair second(authority, context.get());
  REQUIRE(first.Shake());
  REQUIRE(second.Shake());
  CHECK(KeyShownTo(first.server.get()).size() == 32);
  CHECK(KeyShownTo(first.server.get()) != KeyShownTo(second.server.get()));
}

TEST_CASE("A handshake that outlives its second ends with the key it began with") {
  bool wiped = GENERATE(false, true);
  CertificateAuthority authority = CertificateAuthority::Create().value();
  SslContextOwner context = NewClientContext(TLS1_2_VERSION);
  Pair slow(authority, context.get());
  SSL_do_handshake(slow.client.get());
  SSL_do_handshake(slow.server.get());  // Shows its key and waits for the client's.
  WaitForAnotherSecond();
  if (wiped) WipeStaleKeyPair();
  Pair other(authority, context.get());
  REQUIRE(other.Shake());
  REQUIRE(slow.Shake());
  CHECK(KeyShownTo(slow.client.get()) != KeyShownTo(other.client.get()));
}

TEST_CASE("It agrees with the default provider, which holds the published test vectors") {
  REQUIRE(InstallKeyExchange().ok());
  KeyOwner ours(EVP_PKEY_Q_keygen(nullptr, kKeyExchangeQuery, "X25519"));
  KeyOwner theirs(EVP_PKEY_Q_keygen(nullptr, "provider=default", "X25519"));
  REQUIRE(ours);
  REQUIRE(theirs);
  auto encoded = [](EVP_PKEY* key) {
    unsigned char* bytes = nullptr;
    size_t size = EVP_PKEY_get1_encoded_public_key(key, &bytes);
    std::string text(reinterpret_cast<char*>(bytes), size);
    OPENSSL_free(bytes);
    return text;
  };
  auto parse = [](const std::string& bytes, const char* query) {
    KeyContextOwner context(EVP_PKEY_CTX_new_from_name(nullptr, "X25519", query));
    EVP_PKEY* made = nullptr;
    if (EVP_PKEY_paramgen_init(context.get()) != 1) return KeyOwner();
    if (EVP_PKEY_paramgen(context.get(), &made) != 1) return KeyOwner();
    KeyOwner key(made);
    bool set = EVP_PKEY_set1_encoded_public_key(
                   made, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
    return set ? std::move(key) : KeyOwner();
  };
  auto derive = [](EVP_PKEY* own, EVP_PKEY* peer, const char* query) {
    KeyContextOwner context(EVP_PKEY_CTX_new_from_pkey(nullptr, own, query));
    std::string out(32, '\0');
    size_t size = out.size();
    bool made =
        EVP_PKEY_derive_init(context.get()) == 1 &&
        EVP_PKEY_derive_set_peer(context.get(), peer) == 1 &&
        EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) == 1;
    return made ? out : std::string();
  };
  KeyOwner peer = parse(encoded(theirs.get()), kKeyExchangeQuery);
  REQUIRE(peer);
  std::string secret = derive(ours.get(), peer.get(), kKeyExchangeQuery);
  CHECK(secret.size() == 32);
  KeyOwner back(EVP_PKEY_new_raw_public_key_ex(
      nullptr, "X25519", "provider=default",
      reinterpret_cast<const unsigned char*>(encoded(ours.get()).data()), 32));
  CHECK(derive(theirs.get(), back.get(), "provider=default") == secret);

  SECTION("and refuses a peer that leaves no secret") {
    for (char first : {'\0', '\1'}) {  // Points of small order.
      KeyOwner small = parse(first + std::string(31, '\0'), kKeyExchangeQuery);
      REQUIRE(small);
      CHECK(derive(ours.get(), small.get(), kKeyExchangeQuery).empty());
    }
  }
  SECTION("and a key of another length") {
    CHECK_FALSE(parse(std::string(31, 'a'), kKeyExchangeQuery));
    CHECK_FALSE(parse(std::string(33, 'a'), kKeyExchangeQuery));
  }
}

}  // namespace
}  // namespace gateway
