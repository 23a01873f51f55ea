// SPDX-License-Identifier: Apache-2.0
#include "codec/text/nearest.h"

#include <catch2/catch.hpp>

namespace codec {
namespace {

const std::vector<std::string_view> kNames = {"policy", "policy-ref", "prompt", "timeout", "pids"};

TEST_CASE("NearestName finds what a slip of the fingers meant") {
  CHECK(NearestName("polciy", kNames) == "policy");
  CHECK(NearestName("timeuot", kNames) == "timeout");
  CHECK(NearestName("promt", kNames) == "prompt");
  CHECK(NearestName("policyref", kNames) == "policy-ref");
}

TEST_CASE("NearestName gives nothing rather than a guess") {
  CHECK(NearestName("image", kNames).empty());
  CHECK(NearestName("", kNames).empty());
  CHECK(NearestName(std::string(65, 'p'), kNames).empty());
  CHECK(NearestName("policy", {}).empty());
}

}  // namespace
}  // namespace codec
