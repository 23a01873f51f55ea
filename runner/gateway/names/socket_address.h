// SPDX-License-Identifier: Apache-2.0
// Addresses as the kernel takes them, and its word on which of them are this machine's.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "policy/model/destination.h"

namespace gateway {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

SocketAddress ToSocketAddress(const policy::Address& address, uint16_t port);

// Returns whether the kernel would deliver to this machine itself what is sent to `address`: one of
// any of its interfaces. No packet is sent. True if it cannot be found out.
bool IsOwnAddress(const policy::Address& address);

}  // namespace gateway
