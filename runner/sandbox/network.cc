// SPDX-License-Identifier: Apache-2.0
#include "sandbox/network.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace sandbox {
namespace {

// An agent's package manager opens dozens of connections at once; the gateway accepts in batches.
constexpr int kBacklog = 512;

Status SetInterfaceUp(int socket) {
  ifreq request{};
  ::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  if (::ioctl(socket, SIOCSIFFLAGS, &request) != 0) return Errno("bringing loopback up");
  return Ok();
}

Status AddAddress(int socket, const sockaddr_in& address) {
  ifreq request{};
  ::strncpy(request.ifr_name, "lo:1", sizeof request.ifr_name - 1);
  ::memcpy(&request.ifr_addr, &address, sizeof address);
  if (::ioctl(socket, SIOCSIFADDR, &request) != 0) return Errno("adding the proxy's address");
  sockaddr_in mask{};
  mask.sin_family = AF_INET;
  mask.sin_addr.s_addr = 0xffffffff;
  ::memcpy(&request.ifr_netmask, &mask, sizeof mask);
  if (::ioctl(socket, SIOCSIFNETMASK, &request) != 0) return Errno("adding the proxy's address");
  return Ok();
}

}  // namespace

Result<Fd> ListenOnLoopback(const std::string& address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ENSURE(::inet_pton(AF_INET, address.c_str(), &at.sin_addr) == 1);
  Fd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) return Errno("socket");
  TRY(SetInterfaceUp(control.get()));
  TRY(AddAddress(control.get(), at));

  at.sin_port = htons(port);
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return Errno("socket");
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return Errno("bind " + address);
  }
  if (::listen(listener.get(), kBacklog) != 0) return Errno("listen");
  return listener;
}

Fd OpenSocketDiagnostics() {
  return Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

}  // namespace sandbox
