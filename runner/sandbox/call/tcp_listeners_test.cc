// SPDX-License-Identifier: Apache-2.0
#include "sandbox/call/tcp_listeners.h"

#include <catch2/catch.hpp>

namespace sandbox {
namespace {

// As of Linux 6.1, from /proc/net/tcp and /proc/net/tcp6.
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

}  // namespace
}  // namespace sandbox
