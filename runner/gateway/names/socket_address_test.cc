// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/socket_address.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include <catch2/catch.hpp>
#include <vector>

namespace gateway {
namespace {

// Returns the addresses of all interfaces, without those that need an interface's name.
std::vector<policy::Address> InterfaceAddresses() {
  std::vector<policy::Address> addresses;
  ifaddrs* first = nullptr;
  REQUIRE(::getifaddrs(&first) == 0);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & 1U) == 0) continue;  // IFF_UP.
    policy::Address address;
    if (each->ifa_addr->sa_family == AF_INET) {
      address.bytes[10] = address.bytes[11] = 0xFF;
      ::memcpy(&address.bytes[12], &reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr, 4);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(each->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
      ::memcpy(address.bytes.data(), &v6->sin6_addr, 16);
    } else {
      continue;
    }
    addresses.push_back(address);
  }
  ::freeifaddrs(first);
  return addresses;
}

TEST_CASE("The machine's own addresses are those of its interfaces") {
  for (const policy::Address& address : InterfaceAddresses()) {
    CAPTURE(policy::RenderAddress(address));
    CHECK(IsOwnAddress(address));
  }
  for (const char* text : {"127.0.0.1", "127.9.9.9"}) {
    CAPTURE(text);
    CHECK(IsOwnAddress(policy::ParseAddress(text).value()));
  }
}

TEST_CASE("The addresses of others are not the machine's own") {
  for (const char* text : {"93.184.216.34", "203.0.113.7", "240.0.0.1", "240.0.0.2", "2001:db8::1",
                           "2606:4700::1111", "100::1", "100::2"}) {
    CAPTURE(text);
    CHECK_FALSE(IsOwnAddress(policy::ParseAddress(text).value()));
  }
}

}  // namespace
}  // namespace gateway
