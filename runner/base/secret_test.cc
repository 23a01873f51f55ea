// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <catch2/catch.hpp>
#include <new>

namespace {

TEST_CASE("A secret string leaves nothing behind where it was") {
  for (size_t size : {size_t{12}, size_t{100}}) {  // Inside the object, and on the heap.
    std::string value(size, 's');
    std::string source = value;
    alignas(SecretString) char room[sizeof(SecretString)];
    auto* first = new (room) SecretString(std::move(source));
    source.resize(source.capacity());
    CHECK(source.find("sss") == std::string::npos);
    SecretString second = std::move(*first);
    CHECK(second == value);
    first->~SecretString();
    CHECK(std::string_view(room, sizeof room).find("sss") == std::string_view::npos);
  }
}

TEST_CASE("A secret string is wiped when another takes its place") {
  SecretString key = std::string("AWS4ssssssss");
  const char* bytes = key.data();
  key = std::string("k");
  CHECK(key == "k");
  CHECK(std::string_view(bytes + 2, 10).find('s') == std::string_view::npos);
}

}  // namespace
