// SPDX-License-Identifier: Apache-2.0
#include "caller/socket_table.h"

#include <catch2/catch.hpp>

#include "policy/model/destination.h"

namespace caller {
namespace {

Endpoint At(const char* address, uint16_t port) {
  return {policy::ParseAddress(address).value().bytes, port};
}

// Sockets as proc_net(5) writes them on a little-endian machine.
constexpr std::string_view kTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100C80A:0C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "111 1 0\n"
    "   1: 0100C80A:A001 0100C80A:0C38 01 00000000:00000000 00:00000000 00000000  1000        0 "
    "222 1 0\n"
    "   2: 0100C80A:0C38 0100C80A:A001 01 00000000:00000000 00:00000000 00000000     0        0 "
    "333 1 0\n"
    "   3: 0100C80A:A002 0100C80A:0C38 06 00000000:00000000 03:00000000 00000000     0        0 0 "
    "3 0\n"
    "   4: 0100C80A:A003 0100C80A:0C38 08 00000000:00000000 00:00000000 00000000  1000        0 "
    "444 1 0\n";

constexpr std::string_view kTcp6 =
    "  sl  local_address                         remote_address                        st ...\n"
    "   0: 0000000000000000FFFF00000100C80A:A005 0000000000000000FFFF00000100C80A:0C38 01 "
    "00000000:00000000 00:00000000 00000000  1000        0 555 1 0\n"
    "   1: 00000000000000000000000001000000:A006 00000000000000000000000001000000:0C38 01 "
    "00000000:00000000 00:00000000 00000000  1000        0 666 1 0\n";

TEST_CASE("The client's end of a connection is found, not the server's") {
  CHECK(FindSocketInode(kTcp, At("10.200.0.1", 0xa001), At("10.200.0.1", 3128)) == 222);
  CHECK(FindSocketInode(kTcp, At("10.200.0.1", 3128), At("10.200.0.1", 0xa001)) == 333);
}

TEST_CASE("Only an established connection with both ends counts") {
  CHECK_FALSE(FindSocketInode(kTcp, At("10.200.0.1", 0xa002), At("10.200.0.1", 3128)));
  CHECK_FALSE(FindSocketInode(kTcp, At("10.200.0.1", 0xa003), At("10.200.0.1", 3128)));
  CHECK_FALSE(FindSocketInode(kTcp, At("10.200.0.1", 0xa001), At("10.200.0.2", 3128)));
  CHECK_FALSE(FindSocketInode(kTcp, At("10.200.0.1", 0xa001), At("10.200.0.1", 3129)));
  CHECK_FALSE(FindSocketInode(kTcp, At("10.200.0.1", 3128), At("0.0.0.0", 0)));
}

TEST_CASE("A v4 connection of a v6 socket is the same connection") {
  CHECK(FindSocketInode(kTcp6, At("10.200.0.1", 0xa005), At("10.200.0.1", 3128)) == 555);
  CHECK(FindSocketInode(kTcp6, At("::1", 0xa006), At("::1", 3128)) == 666);
}

TEST_CASE("Lines of another form are skipped") {
  for (const char* line : {"", "\n\n", "x", "0: 1 2 3", "   1: 0100C80A:A001 0100C80A:0C38 01\n",
                           "   1: 0100C80A:A001 0100C80A:0C38 01 a b c d e f g\n",
                           "   1: 0100C80A 0100C80A:0C38 01 a b c d e 222\n",
                           "   1: 0100C80A:ZZZZ 0100C80A:0C38 01 a b c d e 222\n"}) {
    INFO(line);
    CHECK_FALSE(FindSocketInode(line, At("10.200.0.1", 0xa001), At("10.200.0.1", 3128)));
  }
}

}  // namespace
}  // namespace caller
