// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "policy/model/destination.h"

namespace sandbox {

// The destination of a call: IPv4 as ::ffff:a.b.c.d.
struct Target {
  policy::Address address;
  uint16_t port = 0;
};

// A socket address as connect(2) was given it.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// Reads the address as the kernel would; nullopt if it is not of IPv4 or IPv6.
std::optional<Target> ParseTarget(const SocketAddress& address);

// True for loopback, and for the unspecified address, which connects to it.
bool IsLocal(const policy::Address& address);
bool IsProxy(const policy::Address& address);
// True for the other address of IPv6 that a sandbox's loopback has in tier `namespaces`.
bool IsOwnAddress6(const policy::Address& address);

}  // namespace sandbox
