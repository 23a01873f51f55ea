// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/socket_address.h"

#include <netinet/in.h>
#include <string.h>

#include "sandbox/network/network.h"

namespace sandbox {

std::optional<Target> ParseTarget(const SocketAddress& address) {
  Target target;
  if (address.bytes.ss_family == AF_INET6 && address.size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 found;
    ::memcpy(&found, &address.bytes, sizeof found);
    ::memcpy(target.address.bytes.data(), &found.sin6_addr, sizeof found.sin6_addr);
    target.port = ntohs(found.sin6_port);
    return target;
  }
  if (address.bytes.ss_family != AF_INET || address.size < sizeof(sockaddr_in)) {
    return std::nullopt;
  }
  sockaddr_in found;
  ::memcpy(&found, &address.bytes, sizeof found);
  target.address.bytes[10] = target.address.bytes[11] = 0xff;
  ::memcpy(&target.address.bytes[12], &found.sin_addr, sizeof found.sin_addr);
  target.port = ntohs(found.sin_port);
  return target;
}

bool IsLocal(const policy::Address& address) {
  return policy::IsLoopback(address) || address == policy::Address{} ||
         address == policy::ParseAddress("0.0.0.0");
}

bool IsProxy(const policy::Address& address) {
  return address == policy::ParseAddress(kProxyAddress);
}

bool IsOwnAddress6(const policy::Address& address) {
  return address == policy::ParseAddress(kOwnAddress6);
}

}  // namespace sandbox
