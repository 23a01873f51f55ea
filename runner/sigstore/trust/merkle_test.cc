// SPDX-License-Identifier: Apache-2.0
#include "sigstore/trust/merkle.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "codec/text/hex.h"

namespace sigstore {
namespace {

std::vector<std::string> Leaves(size_t count) {
  std::vector<std::string> leaves;
  for (size_t i = 0; i < count; ++i) leaves.push_back(LeafHash("leaf " + std::to_string(i)));
  return leaves;
}

}  // namespace

TEST_CASE("A tree's root is that of RFC 6962") {
  // The test vectors of Certificate Transparency's reference implementation.
  const auto hash = [](const std::string& hex) { return LeafHash(*codec::DecodeHex(hex)); };
  CHECK(codec::EncodeHex(TreeRoot({})) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::vector<std::string> leaves = {hash(""), hash("00"), hash("10")};
  CHECK(codec::EncodeHex(TreeRoot(std::span(leaves).first(1))) ==
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
  CHECK(codec::EncodeHex(TreeRoot(std::span(leaves).first(2))) ==
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
  CHECK(codec::EncodeHex(TreeRoot(leaves)) ==
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77");
}

TEST_CASE("Every leaf of a tree is proved by its own path, and by no other") {
  for (size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33}) {
    const std::vector<std::string> leaves = Leaves(count);
    const std::string root = TreeRoot(leaves);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<std::string> path = AuditPath(leaves, i);
      CAPTURE(count, i);
      CHECK(ProvesInclusion(leaves[i], i, count, path, root));
      CHECK_FALSE(ProvesInclusion(LeafHash("another"), i, count, path, root));
      CHECK_FALSE(ProvesInclusion(leaves[i], i + 1, count, path, root));
      CHECK_FALSE(ProvesInclusion(leaves[i], i, count + 1, path, TreeRoot(Leaves(count + 1))));
    }
  }
}

}  // namespace sigstore
