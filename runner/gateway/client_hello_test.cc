// SPDX-License-Identifier: Apache-2.0
#include "gateway/client_hello.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

std::string Number(size_t value, int width) {
  std::string out;
  for (int i = width; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}
std::string Prefixed(const std::string& bytes, int width) {
  return Number(bytes.size(), width) + bytes;
}
std::string Extension(unsigned type, const std::string& bytes) {
  return Number(type, 2) + Prefixed(bytes, 2);
}
std::string Sni(const std::string& name) {
  return Extension(0, Prefixed(Number(0, 1) + Prefixed(name, 2), 2));
}
std::string Alpn(const std::string& list) { return Extension(16, Prefixed(list, 2)); }

std::string Body(const std::string& extensions) {
  return Number(0x0303, 2) + std::string(32, 'r') + Prefixed("session", 1) +
         Prefixed("\x13\x01\x13\x02", 2) + Prefixed(std::string(1, '\0'), 1) +
         Prefixed(extensions, 2);
}
std::string Message(const std::string& body) { return Number(1, 1) + Prefixed(body, 3); }
std::string Record(const std::string& fragment) {
  return Number(22, 1) + Number(0x0301, 2) + Prefixed(fragment, 2);
}
std::string Hello(const std::string& extensions) { return Record(Message(Body(extensions))); }

std::string Read(const std::string& bytes) {
  Result<std::optional<std::string>> hello = PeekServerName(bytes);
  INFO((hello.ok() ? "" : hello.error().what));
  REQUIRE(hello.ok());
  REQUIRE(hello.value().has_value());
  return *std::move(hello).value();
}

const std::string kFine = Sni("API.example.com") + Extension(10, "xy") + Alpn("\x02h2\x08http/1.1");

TEST_CASE("A ClientHello names the host") {
  CHECK(Read(Hello(kFine)) == "api.example.com");
  CHECK(Read(Hello("")).empty());
  const std::string old = Body("");
  CHECK(Read(Record(Message(old.substr(0, old.size() - 2)))).empty());
}

TEST_CASE("A ClientHello may arrive byte by byte and in many records") {
  const std::string message = Message(Body(kFine));
  std::string split;
  for (char byte : message) split += Record(std::string(1, byte));
  for (const std::string& whole : {Record(message), split}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      Result<std::optional<std::string>> hello = PeekServerName(whole.substr(0, size));
      REQUIRE(hello.ok());
      REQUIRE_FALSE(hello.value().has_value());
    }
    CHECK(Read(whole) == "api.example.com");
    CHECK(Read(whole + "whatever follows") == "api.example.com");
  }
}

TEST_CASE("What is not TLS is refused") {
  for (const char* bytes : {"GET / HTTP/1.1", "PRI * HTTP/2.0", "\x16\x03\x01\xff\xff 2345678"}) {
    INFO(bytes);
    CHECK_FALSE(PeekServerName(bytes).ok());
  }
  CHECK_FALSE(PeekServerName(Record(std::string("\x02\0\0\0", 4) + "2345678")).ok());
  CHECK(PeekServerName("").ok());
  CHECK(PeekServerName("\x16").ok());
}

TEST_CASE("The version of a record does not matter, and SSL 2.0's form is refused") {
  std::string hello = Hello(kFine);
  for (char minor : {'\x00', '\x05', '\x7f'}) {
    hello[2] = minor;
    CHECK(Read(hello) == "api.example.com");
  }
  const std::string old = Number(1, 1) + Number(0x0303, 2) + Number(3, 2) + Number(0, 2) +
                          Number(16, 2) + std::string("\0\0\x2f", 3) + std::string(16, 'c');
  CHECK_FALSE(PeekServerName(Number(0x8000 + old.size(), 2) + old).ok());
}

TEST_CASE("A malformed ClientHello is refused") {
  const std::string body = Body(kFine);
  for (size_t size = 0; size < body.size(); ++size) {
    if (size == body.size() - kFine.size() - 2) continue;  // One without extensions.
    INFO(size);
    CHECK_FALSE(PeekServerName(Record(Message(body.substr(0, size)))).ok());
  }
  CHECK_FALSE(PeekServerName(Record(Message(body + "x"))).ok());
  for (const std::string& extensions :
       {Sni("a") + Sni("a"), Alpn("\x02h2") + Alpn("\x02h2"), Sni("a") + "x", Extension(0, ""),
        Extension(0, Prefixed(Number(1, 1) + Prefixed("a", 2), 2)),
        Extension(0,
                  Prefixed(Number(0, 1) + Prefixed("a", 2) + Number(0, 1) + Prefixed("b", 2), 2)),
        Extension(0, Prefixed(Number(0, 1) + Prefixed("a", 2), 2) + "x")}) {
    CHECK_FALSE(PeekServerName(Hello(extensions)).ok());
  }
}

TEST_CASE("A server name is given as it was sent, in lower case") {
  for (const std::string& name :
       {std::string("_a-1.b"), std::string("a."), std::string("a\0b", 3), std::string("[::1]")}) {
    CHECK(Read(Hello(Sni(name))) == name);
  }
  CHECK_FALSE(PeekServerName(Hello(Sni(""))).ok());
}

TEST_CASE("A ClientHello has at most 16 KiB") {
  const std::string padding = Extension(21, std::string(16000, 'p'));
  CHECK(Read(Hello(padding + Sni("a"))) == "a");
  const std::string big = Message(Body(Extension(21, std::string(30000, 'p'))));
  const std::string records = Record(big.substr(0, 16000)) + Record(big.substr(16000));
  CHECK_FALSE(PeekServerName(records.substr(0, kClientHelloBytesMax)).ok());
  CHECK(PeekServerName(records.substr(0, kClientHelloBytesMax - 1)).ok());
}

}  // namespace
}  // namespace gateway
