// SPDX-License-Identifier: Apache-2.0
#include "policy/model/host_pattern.h"

#include <catch2/catch.hpp>

namespace policy {
namespace {

TEST_CASE("CanonicalHost gives one spelling") {
  CHECK(CanonicalHost(" API.Example.COM. ") == "api.example.com");
  CHECK(CanonicalHost("[2001:DB8::1]") == "2001:db8::1");
  CHECK(CanonicalHost("::FFFF:10.0.0.1") == "10.0.0.1");
  CHECK(CanonicalHost("").empty());
}

TEST_CASE("BracketedHost tells an address of IPv6 from its port") {
  CHECK(BracketedHost("::1") == "[::1]");
  CHECK(BracketedHost("127.0.0.1") == "127.0.0.1");
  CHECK(BracketedHost("api.example.com") == "api.example.com");
}

TEST_CASE("HostMatches: without a star a host is compared as it stands") {
  CHECK(HostMatches("a.example.com", "a.example.com"));
  CHECK_FALSE(HostMatches("?.example.com", "a.example.com"));
  CHECK_FALSE(HostMatches("[ab].example.com", "a.example.com"));
  CHECK(HostMatches("*.a?i.example.com", "x.abi.example.com"));
}

TEST_CASE("HostMatches: one star is one label, two are some, wherever they stand (6.2 #64)") {
  CHECK_FALSE(HostMatches("api.**.com", "api.com"));
  CHECK(HostMatches("api.**.com", "api.x.com"));
  CHECK(HostMatches("api.**.com", "api.x.y.com"));
  CHECK(HostMatches("*", "com"));
  CHECK_FALSE(HostMatches("*", "example.com"));
  CHECK(HostMatches("**", "com"));
  CHECK(HostMatches("**", "a.example.com"));
}

TEST_CASE("HostsOverlap finds every pair that can meet") {
  CHECK(HostsOverlap("a.example.com", "a.example.com"));
  CHECK(HostsOverlap("*.example.com", "a.example.com"));
  CHECK(HostsOverlap("a.example.com", "**.example.com"));
  CHECK(HostsOverlap("*-x.example.com", "a-*.example.com"));
  CHECK(HostsOverlap("**.example.com", "*.a.example.com"));
  CHECK(HostsOverlap("**.com.example", "**.x.com.example"));
  CHECK(HostsOverlap("*.s3.*.example.com", "a.s3.eu.example.com"));
  CHECK(HostsOverlap("*{a,b.c}.example.com", "*.c.example.com"));
  CHECK(HostsOverlap("", "a.example.com"));
}

TEST_CASE("HostsOverlap tells apart what cannot meet") {
  CHECK_FALSE(HostsOverlap("a.example.com", "b.example.com"));
  CHECK_FALSE(HostsOverlap("*.example.com", "example.com"));
  CHECK_FALSE(HostsOverlap("*.example.com", "*.a.example.com"));
  CHECK_FALSE(HostsOverlap("a-*.example.com", "b-*.example.com"));
  CHECK_FALSE(HostsOverlap("*-a.example.com", "*-b.example.com"));
  CHECK_FALSE(HostsOverlap("**.example.com", "*.example.org"));
  CHECK_FALSE(HostsOverlap("**.a.example.com", "*.example.com"));
}

TEST_CASE("HostFault bounds names and labels") {
  CHECK(HostFault("a_b.example.com").empty());
  CHECK(HostFault("10.0.0.1").empty());
  CHECK(HostFault("2001:db8::1").empty());
  CHECK(HostFault(std::string(64, 'a') + ".example.com") == "has a label longer than 63 bytes");
  CHECK(HostFault(std::string(254, 'a')) == "is longer than 253 bytes");
  CHECK(HostFault("https://a.example.com") == "is a URL");
  CHECK(HostFault("a..b") == "has an empty label");
  CHECK(HostFault("a:b") == "contains ':'");
  CHECK(HostFault("*.[x.example.com") == "'[' without ']'");
}

}  // namespace
}  // namespace policy
