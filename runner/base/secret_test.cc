// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <catch2/catch.hpp>
#include <new>

namespace {

bool Holds(const char* bytes, size_t size) {
  return std::string_view(bytes, size).find("sss") != std::string_view::npos;
}

TEST_CASE("A short secret string leaves nothing behind where it was") {
  alignas(SecretString) char room[sizeof(SecretString)];
  auto* secret = new (room) SecretString("sssssssssssss");
  CHECK(Holds(room, sizeof room));
  secret->~SecretString();
  CHECK_FALSE(Holds(room, sizeof room));
}

TEST_CASE("A string that a secret string was moved from holds nothing of it") {
  std::string source = "sssssssssssss";
  CHECK(Holds(source.data(), source.capacity()));
  SecretString secret = std::move(source);
  CHECK(secret == "sssssssssssss");
  CHECK_FALSE(Holds(source.data(), source.capacity()));
}

TEST_CASE("A secret string is wiped when another takes its place") {
  SecretString key = std::string("AWS4ssssssss");
  const char* bytes = key.data();
  key = std::string("k");
  CHECK(key == "k");
  CHECK_FALSE(Holds(bytes, 12));
}

}  // namespace
