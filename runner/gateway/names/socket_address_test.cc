// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "base/skip.h"
#include "base/sys.h"

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

// In a network namespace of its own, sets an address of the loopback interface, named `label`.
bool SetAddress(int control, const char* label, const char* address, const char* mask) {
  const auto set = [&](unsigned long request, const char* value) {
    ifreq about{};
    ::strncpy(about.ifr_name, label, IFNAMSIZ - 1);
    auto* v4 = reinterpret_cast<sockaddr_in*>(&about.ifr_addr);
    v4->sin_family = AF_INET;
    return ::inet_pton(AF_INET, value, &v4->sin_addr) == 1 &&
           ::ioctl(control, request, &about) == 0;
  };
  return set(SIOCSIFADDR, address) && set(SIOCSIFNETMASK, mask);
}

TEST_CASE("The machine's own addresses are known where every address can be bound") {
  if (::geteuid() != 0) {
    SKIP("root: only root makes a network namespace without a user namespace");
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto is_own = [](const char* text) {
      return IsOwnAddress(policy::ParseAddress(text).value());
    };
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(2);
    const int control = ::socket(AF_INET, SOCK_DGRAM, 0);
    ifreq up{};
    ::strcpy(up.ifr_name, "lo");
    up.ifr_flags = IFF_UP;
    if (::ioctl(control, SIOCSIFFLAGS, &up) != 0 ||
        !SetAddress(control, "lo:1", "10.9.0.1", "255.255.255.0") ||
        !SetAddress(control, "lo:2", "10.9.0.2", "255.255.255.0") ||
        !sys::WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", "1").ok()) {
      ::_exit(3);
    }
    const bool own = is_own("10.9.0.1") && is_own("10.9.0.2") && is_own("127.0.0.1");
    ::_exit(!own ? 4 : is_own("203.0.113.7") ? 5 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace gateway
