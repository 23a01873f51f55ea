// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/tcp_listeners.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/fd.h"
#include "sandbox/network/netlink.h"

namespace sandbox {
namespace {

// A table as Linux 6.1 gives it in /proc/net/tcp and /proc/net/tcp6.
constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41 "
    "1 "
    "0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 42 "
    "1 "
    "0000000000000000 20 4 30 10 -1\n"
    "   2: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 43 1 0000000000000000 100 0 0 10 0\n"
    "   3: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 44 "
    "1 "
    "0000000000000000 100 0 0 10 0\n";

TEST_CASE("Of a port, all that listen are found, whatever their address, and nothing else") {
  CHECK(ParseTcpListeners(kTable, 8080) == std::vector<uint64_t>{41, 43});
  CHECK(ParseTcpListeners(kTable, 22) == std::vector<uint64_t>{44});
  CHECK(ParseTcpListeners(kTable, 50000).empty());
  CHECK(ParseTcpListeners("", 22).empty());
  CHECK(ParseTcpListeners("one line\nand another\n", 22).empty());
}

TEST_CASE("The kernel and its table tell the same listeners") {
  Fd listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), any, size) == 0);
  REQUIRE(::getsockname(listener.get(), any, &size) == 0);
  const uint16_t port = ntohs(address.sin6_port);
  const Fd diagnostics = OpenNetlink(NETLINK_SOCK_DIAG).value();
  CHECK(TcpListeners(diagnostics.get(), port).empty());  // It is bound, and does not listen yet.
  REQUIRE(::listen(listener.get(), 1) == 0);
  struct stat st {};
  REQUIRE(::fstat(listener.get(), &st) == 0);
  CHECK(TcpListeners(diagnostics.get(), port) == std::vector<uint64_t>{st.st_ino});
  CHECK(TcpListeners(-1, port) == std::vector<uint64_t>{st.st_ino});
}

}  // namespace
}  // namespace sandbox
