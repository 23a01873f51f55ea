// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sandbox {

// The inodes of the TCP sockets that listen at `port` of any address, in this network namespace.
std::vector<uint64_t> TcpListeners(uint16_t port);

// Of what /proc/net/tcp says.
std::vector<uint64_t> ParseTcpListeners(std::string_view table, uint16_t port);

}  // namespace sandbox
