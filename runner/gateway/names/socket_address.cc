// SPDX-License-Identifier: Apache-2.0
#include "gateway/names/socket_address.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include <array>
#include <cstddef>

#include "base/fd.h"

namespace gateway {
namespace {

// One message to the kernel, and the beginning of its response.
struct RouteMessage {
  nlmsghdr head{};
  rtmsg route{};
  rtattr destination{};
  std::array<uint8_t, 16> address{};
};

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

// Asks for the route that packets to `address` take. What can be bound does not tell: where
// `ip_nonlocal_bind` is set, that is every address.
bool IsOwnAddress(const policy::Address& address) {
  const size_t bytes = address.is_v4() ? 4 : 16;
  RouteMessage message;
  message.head.nlmsg_type = RTM_GETROUTE;
  message.head.nlmsg_flags = NLM_F_REQUEST;
  message.head.nlmsg_len = static_cast<uint32_t>(offsetof(RouteMessage, address) + bytes);
  message.route.rtm_family = address.is_v4() ? AF_INET : AF_INET6;
  message.route.rtm_dst_len = static_cast<uint8_t>(8 * bytes);
  message.destination.rta_type = RTA_DST;
  message.destination.rta_len = static_cast<uint16_t>(RTA_LENGTH(bytes));
  ::memcpy(message.address.data(), &address.bytes[16 - bytes], bytes);
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid() ||
      ::send(socket.get(), &message, message.head.nlmsg_len, 0) != message.head.nlmsg_len) {
    return true;
  }
  // The kernel has responded by now.
  RouteMessage response;
  const ssize_t n = ::recv(socket.get(), &response, sizeof response, MSG_DONTWAIT);
  if (n < static_cast<ssize_t>(offsetof(RouteMessage, destination))) return true;
  if (response.head.nlmsg_type == RTM_NEWROUTE) return response.route.rtm_type == RTN_LOCAL;
  return response.head.nlmsg_type != NLMSG_ERROR;  // No route leads there.
}

}  // namespace gateway
