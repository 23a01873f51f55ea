// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/socket_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/fd.h"

namespace gateway {
namespace {

Fd OpenDatagram(const SocketAddress& address) {
  return Fd(::socket(address.bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

// Only a machine's own addresses can be bound, unless its `ip_nonlocal_bind` is set.
bool MayBind(const policy::Address& address) {
  SocketAddress place = ToSocketAddress(address, 0);
  Fd socket = OpenDatagram(place);
  if (!socket.valid()) return errno != EAFNOSUPPORT;
  return ::bind(socket.get(), place.get(), place.size) == 0;
}

// Returns whether packets to `address` would come from it. That is so of a machine's own addresses,
// but for second ones in the network of another.
bool IsOwnSource(const policy::Address& address) {
  constexpr uint16_t kAnyPort = 9;
  SocketAddress peer = ToSocketAddress(address, kAnyPort);
  Fd socket = OpenDatagram(peer);
  if (!socket.valid()) return true;
  if (::connect(socket.get(), peer.get(), peer.size) != 0) return false;
  SocketAddress source;
  source.size = sizeof source.bytes;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&source.bytes), &source.size) != 0) {
    return true;
  }
  if (!address.is_v4()) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&source.bytes);
    return ::memcmp(&v6->sin6_addr, address.bytes.data(), 16) == 0;
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&source.bytes);
  return ::memcmp(&v4->sin_addr, &address.bytes[12], 4) == 0;
}

}  // namespace

SocketAddress ToSocketAddress(const policy::Address& address, uint16_t port) {
  SocketAddress result;
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    ::memcpy(&v4.sin_addr, &address.bytes[12], 4);
    ::memcpy(&result.bytes, &v4, sizeof v4);
    result.size = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
    ::memcpy(&result.bytes, &v6, sizeof v6);
    result.size = sizeof v6;
  }
  return result;
}

bool IsOwnAddress(const policy::Address& address) {
  if (!MayBind(address)) return false;
  // Reserved and discarded: no machine has them, so that binding them tells of `ip_nonlocal_bind`.
  static const policy::Address strange_v4 = policy::ParseAddress("240.0.0.1").value();
  static const policy::Address strange_v6 = policy::ParseAddress("100::1").value();
  return !MayBind(address.is_v4() ? strange_v4 : strange_v6) || IsOwnSource(address);
}

}  // namespace gateway
