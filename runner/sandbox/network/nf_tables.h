// SPDX-License-Identifier: Apache-2.0
// The packet filter of the sandbox's own network namespace, as messages to the kernel: the `nft`
// program is not needed. Needs CAP_NET_ADMIN over the namespace, as its first process has.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

constexpr uint16_t kDnsPort = 53;

struct FilterRequest {
  std::string proxy_address;  // IPv4, dotted.
  std::string own_address6;   // Loopback's address that is not ::1.
  uint16_t proxy_port;
  uint16_t capture_port;
  uint16_t log_group;
};

// Installs the filter: every TCP connection but those to loopback, to `own_address6` and to the
// proxy is handed to the transparent listener at 127.0.0.1:`capture_port` or [::1]:`capture_port`,
// for every destination, and keeps both of its addresses (TPROXY: getsockname(2) of the accepted
// socket tells where it wanted to go). Everything else that leaves loopback, questions to name
// servers aside, is refused at once, and logged to `log_group` at 5 packets a second (OpenShell's
// rate, burst 10). Fails with kUnsupported where the kernel has no nf_tables or lacks one of its
// parts.
Status InstallFilter(const FilterRequest& request);

// Opens a socket on which the packets of `group` arrive (nfnetlink_log), their heads only.
Result<Fd> OpenPacketLog(uint16_t group);

}  // namespace sandbox
