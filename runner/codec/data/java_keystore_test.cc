// SPDX-License-Identifier: Apache-2.0
#include "codec/data/java_keystore.h"

#include <catch2/catch.hpp>

namespace codec {

std::string Stored(const std::string& pem) {
  JavaKeyStore store;
  store.Add(pem);
  return store.Render();
}

TEST_CASE("A Java key store holds every certificate and nothing else") {
  std::string one = "-----BEGIN CERTIFICATE-----\naGVs\nbG8=\n-----END CERTIFICATE-----\n";
  std::string broken = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
  std::string store = Stored("comment\n" + one + broken + one + "-----BEGIN CERTIFI");
  CHECK(store.substr(0, 4) == "\xfe\xed\xfe\xed");
  CHECK(store.substr(4, 8) == std::string("\0\0\0\2\0\0\0\2", 8));
  size_t first = store.find("hello");
  REQUIRE(first != std::string::npos);
  CHECK(store.find("hello", first + 1) != std::string::npos);
  CHECK(store.substr(first - 4, 4) == std::string("\0\0\0\5", 4));
  CHECK(Stored("").size() == 12 + 20);
  for (const char* text : {"aGVsbG8", "aGV=bG8=", "aGVsb===", "=", "", " \n"}) {
    CAPTURE(text);
    CHECK(Stored("-----BEGIN CERTIFICATE-----\n" + std::string(text) +
                 "\n-----END CERTIFICATE-----\n") == Stored(""));
  }
  CHECK(
      Stored(
          "-----BEGIN CERTIFICATE-----\r\naGVs \r\n\tbG8=\r\n\r\n-----END CERTIFICATE-----\r\n") ==
      Stored(one));
  JavaKeyStore pieces;
  pieces.Add("comment\n" + one);
  pieces.Add(broken);
  pieces.Add(one);
  CHECK(pieces.Render() == store);
}

}  // namespace codec
