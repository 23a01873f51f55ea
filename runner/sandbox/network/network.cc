// SPDX-License-Identifier: Apache-2.0
#include "sandbox/network/network.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/user_namespace.h"
#include "sandbox/network/netlink.h"
#include "sandbox/network/nf_tables.h"

namespace sandbox {
namespace {

// An agent's package manager opens dozens of connections at once; the gateway accepts in batches.
constexpr int kBacklog = 512;
constexpr uint16_t kCapturePort = 15001;  // OpenShell's.
constexpr uint16_t kLogGroup = 1;
constexpr uint32_t kLoopbackIndex = 1;  // The same in every namespace.
constexpr int kIpv6Transparent = 75;    // IPV6_TRANSPARENT, which <netinet/in.h> may lack.

Status SetInterfaceUp(int socket) {
  ifreq request{};
  ::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  if (::ioctl(socket, SIOCSIFFLAGS, &request) != 0)
    return sys::NamespaceErrno("bringing loopback up");
  return Ok();
}

// Without a label of its own, which would look like an interface's name. `address` is in network
// order.
Status AddAddress(int socket, uint8_t family, std::string_view address) {
  constexpr unsigned kBitsOfByte = 8;
  ifaddrmsg message{};
  message.ifa_family = family;
  message.ifa_prefixlen = static_cast<uint8_t>(address.size() * kBitsOfByte);
  message.ifa_flags = IFA_F_PERMANENT | IFA_F_NODAD;
  message.ifa_scope = RT_SCOPE_UNIVERSE;
  message.ifa_index = kLoopbackIndex;
  NetlinkBatch batch;
  batch.Begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, BytesOf(message));
  batch.Put(IFA_LOCAL, address);
  batch.Put(IFA_ADDRESS, address);
  return ExchangeNetlink(socket, batch, "adding an address to loopback")
      .Kind(ErrorKind::kNamespace);
}

// The proxy's, and one of IPv6 that is not loopback's: without it the C library takes the sandbox
// for a machine without IPv6 (AI_ADDRCONFIG), and refuses ::1.
Status AddAddresses(const std::string& proxy) {
  in_addr address4{};
  ENSURE(::inet_pton(AF_INET, proxy.c_str(), &address4) == 1);
  in6_addr address6{};
  ENSURE(::inet_pton(AF_INET6, kOwnAddress6, &address6) == 1);
  Fd socket = TRY(OpenNetlink(NETLINK_ROUTE));
  TRY(AddAddress(socket.get(), AF_INET, BytesOf(address4)).Context("the proxy's address"));
  // A kernel without IPv6 has none.
  (void)AddAddress(socket.get(), AF_INET6, BytesOf(address6)).ok();
  return Ok();
}

// "local default dev lo src SOURCE": every address is this machine's. The source is loopback's own,
// or else a client's socket would have the address it connects to at both of its ends.
Status AddLocalDefault(int socket, uint8_t family, std::string_view source) {
  rtmsg route{};
  route.rtm_family = family;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  NetlinkBatch batch;
  batch.Begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK,
              {reinterpret_cast<const char*>(&route), sizeof route});
  batch.Put(RTA_OIF, {reinterpret_cast<const char*>(&kLoopbackIndex), sizeof kLoopbackIndex});
  batch.Put(RTA_PREFSRC, source);
  return ExchangeNetlink(socket, batch, "making every address local").Kind(ErrorKind::kNamespace);
}

// Returns true if IPv6 is there as well.
Result<bool> AddRoutes() {
  in_addr source4{htonl(INADDR_LOOPBACK)};
  Fd socket = TRY(OpenNetlink(NETLINK_ROUTE));
  TRY(AddLocalDefault(socket.get(), AF_INET,
                      {reinterpret_cast<const char*>(&source4), sizeof source4}));
  const in6_addr source6 = IN6ADDR_LOOPBACK_INIT;
  Status added = AddLocalDefault(socket.get(), AF_INET6,
                                 {reinterpret_cast<const char*>(&source6), sizeof source6});
  return added.ok();
}

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

SocketAddress At(const char* address, uint16_t port) {
  SocketAddress at;
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    ::memcpy(&at.bytes, &v4, at.size = sizeof v4);
    return at;
  }
  sockaddr_in6 v6{};
  ENSURE(::inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  ::memcpy(&at.bytes, &v6, at.size = sizeof v6);
  return at;
}

Result<Fd> Bound(int type, const SocketAddress& at, bool transparent) {
  int family = at.bytes.ss_family;
  Fd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Errno("socket");
  int on = 1;
  int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  if (family == AF_INET6 && ::setsockopt(socket.get(), level, IPV6_V6ONLY, &on, sizeof on) != 0) {
    return Errno("setsockopt(IPV6_V6ONLY)");
  }
  int option = family == AF_INET ? IP_TRANSPARENT : kIpv6Transparent;
  if (transparent && ::setsockopt(socket.get(), level, option, &on, sizeof on) != 0) {
    return Errno("setsockopt(IP_TRANSPARENT)");
  }
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.bytes), at.size) != 0) {
    return Errno("bind");
  }
  return socket;
}

Result<Fd> Listen(const SocketAddress& at, bool transparent = false) {
  Fd socket = TRY(Bound(SOCK_STREAM, at, transparent));
  if (::listen(socket.get(), kBacklog) != 0) return Errno("listen");
  return socket;
}

// One listener for all ports; false, with the reason, where the kernel cannot do that.
Result<bool> CaptureAll(const std::string& proxy_address, uint16_t proxy_port, bool v6,
                        Network& network) {
  Status filter = InstallFilter({.proxy_address = proxy_address,
                                 .own_address6 = kOwnAddress6,
                                 .proxy_port = proxy_port,
                                 .capture_port = kCapturePort,
                                 .log_group = kLogGroup});
  if (!filter.ok()) {
    network.waiver = filter.error().what;
    return false;
  }
  Fd listener = TRY(Listen(At("127.0.0.1", kCapturePort), true).Context("capture"));
  network.gateway_sockets.push_back({GatewaySocket::Kind::kTransparent, std::move(listener)});
  if (v6) {
    Fd listener6 = TRY(Listen(At("::1", kCapturePort), true).Context("capture of IPv6"));
    network.gateway_sockets.push_back({GatewaySocket::Kind::kTransparent, std::move(listener6)});
  }
  // Without it the packets are refused all the same.
  Result<Fd> log = OpenPacketLog(kLogGroup);
  if (log.ok())
    network.gateway_sockets.push_back({GatewaySocket::Kind::kRefusals, std::move(log).value()});
  return true;
}

// A listener for each port, at every address. Ports that are already in use by the gateway are
// skipped.
void CapturePorts(const std::vector<uint16_t>& ports, bool v6, Network& network) {
  for (uint16_t port : ports) {
    for (const char* any : {"0.0.0.0", "::"}) {
      if (any[0] == ':' && !v6) continue;
      Result<Fd> listener = Listen(At(any, port));
      if (!listener.ok()) continue;
      network.gateway_sockets.push_back(
          {GatewaySocket::Kind::kTransparent, std::move(listener).value()});
    }
  }
}

// So that ping(8) gets as far as the filter, which refuses and records it; where /proc/sys cannot
// be written, the agent is refused the socket, as the kernel does by itself.
void LetPingsBeSeen() {
  std::string group = std::to_string(::getegid());
  (void)sys::WriteFile("/proc/sys/net/ipv4/ping_group_range", group + " " + group).ok();
}

}  // namespace

Fd OpenSocketDiagnostics() {
  Result<Fd> socket = OpenNetlink(NETLINK_SOCK_DIAG);
  return socket.ok() ? std::move(socket).value() : Fd();
}

Result<Network> PrepareNetwork(const std::string& proxy_address, uint16_t proxy_port,
                               const std::vector<uint16_t>& ports) {
  Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) return Errno("socket");
  TRY(SetInterfaceUp(control.get()));
  TRY(AddAddresses(proxy_address));
  bool v6 = TRY(AddRoutes());

  Network network;
  Fd proxy = TRY(Listen(At(proxy_address.c_str(), proxy_port)).Context("proxy"));
  network.gateway_sockets.push_back({GatewaySocket::Kind::kProxy, std::move(proxy)});
  // All addresses are local: one socket is the name server at every one of them, and answers from
  // the one that was asked, which IP_TRANSPARENT is for.
  Fd names = TRY(Bound(SOCK_DGRAM, At("0.0.0.0", kDnsPort), true).Context("names"));
  network.gateway_sockets.push_back({GatewaySocket::Kind::kNames, std::move(names)});
  if (v6) {
    Fd names6 = TRY(Bound(SOCK_DGRAM, At("::", kDnsPort), true).Context("names over IPv6"));
    network.gateway_sockets.push_back({GatewaySocket::Kind::kNames, std::move(names6)});
  }
  bool all = TRY(CaptureAll(proxy_address, proxy_port, v6, network));
  if (all) {
    LetPingsBeSeen();
  } else {
    CapturePorts(ports, v6, network);
  }
  return network;
}

}  // namespace sandbox
