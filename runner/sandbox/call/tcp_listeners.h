// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sandbox {

// Returns the inodes of the TCP sockets that listen at `port` of any address, in the network
// namespace of `diagnostics`, a NETLINK_SOCK_DIAG socket. The kernel keeps a list of what listens;
// /proc/net/tcp, which is read where there is no such socket (-1), takes it milliseconds, since it
// looks at the table of all connections.
std::vector<uint64_t> TcpListeners(int diagnostics, uint16_t port);

// Returns the same from the text of /proc/net/tcp.
std::vector<uint64_t> ParseTcpListeners(std::string_view table, uint16_t port);

}  // namespace sandbox
