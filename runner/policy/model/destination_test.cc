// SPDX-License-Identifier: Apache-2.0
#include "policy/model/destination.h"

#include <catch2/catch.hpp>

namespace policy {
namespace {

AddressClass ClassOf(std::string_view text) { return ClassifyAddress(ParseAddress(text).value()); }

std::string Fault(std::string_view cidr) {
  std::string why_not;
  return ValidateAllowedIp(cidr, &why_not) ? "" : why_not;
}

TEST_CASE("ParseAddress takes strict forms only") {
  CHECK(RenderAddress(*ParseAddress("::ffff:10.0.0.1")) == "10.0.0.1");
  CHECK(RenderAddress(*ParseAddress("2001:DB8:0::1")) == "2001:db8::1");
  for (std::string_view bad : {"", "10.1", "010.0.0.1", "0x7f.0.0.1", "2130706433", "[::1]",
                               "fe80::1%eth0", "1.2.3.4.", "a", "1.2.3.4 "}) {
    CHECK_FALSE(ParseAddress(bad).has_value());
  }
  CHECK_FALSE(ParseAddress(std::string_view("10.0.0.1\0x", 10)).has_value());
}

TEST_CASE("ClassifyAddress knows what no policy opens") {
  for (std::string_view text : {"127.0.0.1",
                                "127.255.255.254",
                                "169.254.169.254",
                                "0.0.0.0",
                                "::1",
                                "::",
                                "fe80::1",
                                "febf::1",
                                "::ffff:127.0.0.1",
                                "64:ff9b::7f00:1",
                                "64:ff9b::a9fe:a9fe",
                                "2002:7f00:1::",
                                "::127.0.0.1",
                                "fd00:ec2::254",
                                "fd20:ce::254",
                                "100.100.100.200",
                                "168.63.129.16",
                                "192.0.0.192",
                                "fd00:ec2::23",
                                "::ffff:168.63.129.16",
                                "64:ff9b::a83f:8110",
                                "64:ff9b:1::a9fe:a9fe",
                                "64:ff9b:1:a9fe:a9:fe00::",
                                "64:ff9b:1:0a9:fe:a9fe::",
                                "64:ff9b:1:0:a9:fea9:fe00:0",
                                "64:ff9b:1::7f00:1",
                                "::ffff:0:169.254.169.254",
                                "::ffff:0:127.0.0.1",
                                "2001:0:1:1:0:0:5601:5601",
                                "2001:0:a00:1:8000:0:80ff:fffe",
                                "fd00:c1::a9fe:a9fe",
                                "fd00:42::42"}) {
    CAPTURE(text);
    CHECK(ClassOf(text) == AddressClass::kAlwaysBlocked);
  }
}

TEST_CASE("ClassifyAddress knows internal addresses") {
  for (std::string_view text : {"10.0.0.1",
                                "172.16.0.1",
                                "172.31.255.255",
                                "192.168.1.1",
                                "100.64.0.1",
                                "192.0.0.8",
                                "192.0.2.1",
                                "198.51.100.1",
                                "203.0.113.1",
                                "198.18.0.1",
                                "198.19.255.255",
                                "255.255.255.255",
                                "fc00::1",
                                "fd12::1",
                                "::ffff:10.0.0.1",
                                "64:ff9b::a00:1",
                                "2002:c0a8:1::",
                                "224.0.0.1",
                                "ff02::1",
                                "::10.0.0.1",
                                "64:ff9b:1::5db8:d822",
                                "::ffff:0:10.0.0.1",
                                "2001:0:1:1::f5ff:fffe"}) {
    CAPTURE(text);
    CHECK(ClassOf(text) == AddressClass::kInternal);
  }
}

TEST_CASE("No policy opens a cloud's metadata address, by name, literally or by range") {
  for (std::string_view text : {"168.63.129.16", "192.0.0.192", "100.100.100.200"}) {
    CAPTURE(text);
    std::vector<Address> metadata = {*ParseAddress(text)};
    Handling declared;
    declared.declared_host = true;
    CHECK_FALSE(DecideDestination(declared, "a.example.com", 80, metadata).allowed);
    CHECK_FALSE(DecideDestination(declared, text, 80, metadata).allowed);
    Handling ranged;
    ranged.allowed_ips = {"168.0.0.0/8", "192.0.0.0/24", "100.64.0.0/10"};
    CHECK_FALSE(DecideDestination(ranged, "a.example.com", 80, metadata).allowed);
    std::vector<Address> beside = {metadata.front()};
    beside.front().bytes[15] ^= 1;
    CHECK(DecideDestination(declared, "a.example.com", 80, beside).allowed);
    CHECK(DecideDestination(ranged, "a.example.com", 80, beside).allowed);
    CHECK(Fault(text) == "is a cloud metadata address, which no policy can allow");
    CHECK(Fault(RenderAddress(beside.front())).empty());
  }
}

TEST_CASE("ClassifyAddress leaves the rest public") {
  for (std::string_view text :
       {"93.184.216.34", "172.32.0.1", "172.15.255.255", "100.128.0.1", "198.20.0.1", "1.1.1.1",
        "2606:4700::1111", "64:ff9b::5db8:d822", "2002:5db8:d822::", "fec0::1"}) {
    CAPTURE(text);
    CHECK((ClassOf(text) == AddressClass::kPublic) == (text != "fec0::1"));
  }
}

TEST_CASE("ValidateAllowedIp refuses what overlaps an address no policy opens") {
  CHECK(Fault("10.0.0.0/8").empty());
  CHECK(Fault("10.1.2.3").empty());
  CHECK(Fault("fd00::/8").empty());
  CHECK(Fault("2001:db8::/32").empty());
  for (std::string_view text : {"0.0.0.0/0", "169.254.169.254/32", "169.254.169.254", "::/0",
                                "127.0.0.0/8", "127.0.0.1", "::ffff:0:0/96", "fe80::/64", "::1"}) {
    CAPTURE(text);
    CHECK(Fault(text).find("which no policy can allow") != std::string::npos);
  }
  for (std::string_view text : {"", "x", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1",
                                "10.0.0.0/1x", "10.0.0/8", "10.0.0.0/008x"}) {
    CAPTURE(text);
    CHECK(Fault(text) == "neither an IP address nor a CIDR range");
  }
}

TEST_CASE("DecideDestination refuses control-plane ports of named destinations") {
  Handling declared;
  declared.declared_host = true;
  std::vector<Address> address = {*ParseAddress("10.0.0.1")};
  CHECK(DecideDestination(declared, "a.example.com", 443, address).allowed);
  for (uint16_t port : {2379, 2380, 6443, 10250, 10255}) {
    CHECK(DecideDestination(declared, "a.example.com", port, address).label ==
          "declared endpoint check failed");
  }
}

TEST_CASE("DecideDestination gives the addresses that may be dialled, and none when refused") {
  std::vector<Address> two = {*ParseAddress("93.184.216.34"), *ParseAddress("2606:4700::1111")};
  AddressVerdict allowed = DecideDestination({}, "a.example.com", 443, two);
  CHECK(allowed.allowed);
  CHECK(allowed.addresses == two);
  two.push_back(*ParseAddress("10.0.0.1"));
  AddressVerdict refused = DecideDestination({}, "a.example.com", 443, two);
  CHECK(refused.label == "internal address");
  CHECK(refused.addresses.empty());
  CHECK_FALSE(DecideDestination({}, "a.example.com", 443, {}).allowed);
}

TEST_CASE("DecideDestination does not trust allowed_ips that should not have loaded") {
  Handling handling;
  handling.allowed_ips = {"0.0.0.0/0"};
  CHECK(DecideDestination(handling, "a", 443, {*ParseAddress("10.0.0.1")}).label ==
        "invalid allowed_ips in policy");
}

TEST_CASE("A name leads to an address of this machine only if the policy contains that address") {
  const OwnAddressTest is_own = [](const Address& address) {
    return address == *ParseAddress("10.0.0.1") || address == *ParseAddress("93.184.216.34");
  };
  Handling pattern;
  Handling declared;
  declared.declared_host = true;
  Handling ranged;
  ranged.allowed_ips = {"10.0.0.0/24", "93.184.216.0/24"};
  Handling single;
  single.allowed_ips = {"10.0.0.1", "93.184.216.34/32"};
  auto decide = [&](const Handling& handling, std::string_view host, std::string_view address) {
    return DecideDestination(handling, host, 443, {*ParseAddress(address)}, is_own).allowed;
  };
  for (std::string_view own : {"10.0.0.1", "93.184.216.34"}) {
    CAPTURE(own);
    CHECK_FALSE(decide(pattern, "a.example.com", own));
    CHECK_FALSE(decide(pattern, own, own));
    CHECK_FALSE(decide(declared, "a.example.com", own));
    CHECK_FALSE(decide(ranged, "a.example.com", own));
    CHECK(decide(single, "a.example.com", own));
    CHECK(decide(declared, own, own));
  }
  CHECK_FALSE(decide(pattern, "a.example.com", "64:ff9b::5db8:d822"));
  CHECK(decide(pattern, "a.example.com", "93.184.216.35"));
  CHECK(decide(declared, "a.example.com", "10.0.0.2"));
  CHECK(decide(ranged, "a.example.com", "10.0.0.2"));
  std::vector<Address> mixed = {*ParseAddress("93.184.216.35"), *ParseAddress("93.184.216.34")};
  CHECK(DecideDestination(pattern, "a.example.com", 443, mixed, is_own).label ==
        "this machine's own address");
  CHECK(DecideDestination(pattern, "a.example.com", 443, mixed).allowed);
}

TEST_CASE("A host without known addresses is refused where they would be checked") {
  Handling listed;
  listed.allowed_ips = {"10.0.0.0/8"};
  CHECK(DecideUnresolved({}, 443).allowed);
  CHECK_FALSE(DecideUnresolved({}, 6443).allowed);
  CHECK_FALSE(DecideUnresolved(listed, 443).allowed);
}

TEST_CASE("A host alias leads to loopback only, and only when it is declared") {
  Handling declared;
  declared.declared_host = true;
  std::vector<Address> loopback = {*ParseAddress("127.0.0.1")};
  CHECK(IsHostAlias("Host.Docker.Internal"));
  CHECK_FALSE(IsHostAlias("host.docker.internal.example.com"));
  CHECK(DecideDestination(declared, "host.docker.internal", 8080, loopback).allowed);
  CHECK_FALSE(DecideDestination({}, "host.docker.internal", 8080, loopback).allowed);
  CHECK_FALSE(DecideDestination(declared, "other.example.com", 8080, loopback).allowed);
}

}  // namespace
}  // namespace policy
