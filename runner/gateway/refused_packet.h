// SPDX-License-Identifier: Apache-2.0
// Packets from the sandbox that the kernel rejected: everything except TCP and DNS queries. The
// kernel reports them over netlink (nfnetlink_log), at most 5 a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "gateway/async/task.h"
#include "gateway/services.h"
#include "policy/model/destination.h"

namespace gateway {

struct RefusedPacket {
  policy::Address destination;
  uint16_t port = 0;     // 0 if the protocol has none.
  std::string protocol;  // "udp", "icmp", or its number (IANA).
};

// Parses the packets of one read from the netlink socket. Anything but IP packets is skipped.
std::vector<RefusedPacket> ParseRefusedPackets(std::string_view datagram);

// Records them until the process ends.
Task<void> ServeRefusals(Services& services, Fd socket);

}  // namespace gateway
