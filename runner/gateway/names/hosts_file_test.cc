// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/hosts_file.h"

#include <catch2/catch.hpp>

namespace gateway {
namespace {

TEST_CASE("The hosts file gives names their addresses in its order") {
  HostsFile hosts = ParseHostsFile(
      "127.0.0.1 localhost # comment\n# all comment\n\n10.0.0.1\tOne.Example two\n"
      "10.0.0.2 two\nnot-an-address x\n::1 localhost");
  CHECK(hosts.size() == 3);
  REQUIRE(hosts.at("two").size() == 2);
  CHECK(policy::RenderAddress(hosts.at("two")[1]) == "10.0.0.2");
  CHECK(hosts.count("one.example") == 1);
  CHECK(hosts.at("localhost").size() == 2);
}

}  // namespace
}  // namespace gateway
