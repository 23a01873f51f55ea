// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/synthetic_pool.h"

#include <catch2/catch.hpp>
#include <set>

#include "gateway/names/limits.h"

namespace gateway {
namespace {

policy::Address At(const char* text) { return *policy::ParseAddress(text); }

TEST_CASE("A name keeps its address, and the address leads back to the name") {
  SyntheticPool pool;
  policy::Address first = pool.Assign("api.example.com");
  policy::Address second = pool.Assign("other.example.com");
  CHECK(policy::RenderAddress(first) == "198.18.0.1");
  CHECK(pool.Assign("api.example.com") == first);
  CHECK(pool.Find(first) == "api.example.com");
  CHECK(pool.Find(second) == "other.example.com");
}

TEST_CASE("An address that was not given out has no name") {
  SyntheticPool pool;
  pool.Assign("api.example.com");
  for (const char* text : {"198.18.0.0", "198.18.0.2", "198.19.255.255", "198.20.0.1", "10.0.0.1",
                           "fd23:6f70:656e::1", "::1"}) {
    CHECK(pool.Find(At(text)) == std::nullopt);
  }
}

TEST_CASE(
    "The name that was not used for the longest makes place, its address is not given again") {
  SyntheticPool pool;
  policy::Address kept = pool.Assign("kept.example.com");
  policy::Address lost = pool.Assign("lost.example.com");
  std::set<std::string> given;
  for (size_t i = 0; i < kSyntheticNamesMax - 1; ++i) {
    CHECK(pool.Find(kept) == "kept.example.com");
    given.insert(policy::RenderAddress(pool.Assign("n" + std::to_string(i) + ".example.com")));
  }
  CHECK(pool.Find(kept) == "kept.example.com");
  CHECK(pool.Find(lost) == std::nullopt);
  CHECK(given.size() == kSyntheticNamesMax - 1);
  CHECK_FALSE(given.contains(policy::RenderAddress(lost)));
}

TEST_CASE("Addresses start over at the end of the range, past those that are in use") {
  SyntheticPool pool;
  policy::Address first = pool.Assign("first.example.com");
  for (size_t i = 0; i < 131'069; ++i) {
    pool.Assign("n" + std::to_string(i));
    pool.Find(first);
  }
  CHECK(policy::RenderAddress(pool.Assign("last")) == "198.18.0.2");
}

TEST_CASE("The ranges of synthetic addresses end where they end") {
  for (const char* text : {"198.18.0.0", "198.19.255.255",
                           "fd23:6f70:656e::", "fd23:6f70:656e:ffff:ffff:ffff:ffff:ffff"}) {
    CHECK(SyntheticPool::Contains(At(text)));
  }
  for (const char* text :
       {"198.17.255.255", "198.20.0.0", "fd23:6f70:656f::", "fd23:6f70:656d::", "::c612:1"}) {
    CHECK_FALSE(SyntheticPool::Contains(At(text)));
  }
}

}  // namespace
}  // namespace gateway
