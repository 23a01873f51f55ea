// SPDX-License-Identifier: Apache-2.0
// The sandbox's own network namespace: loopback, no way out, and the gateway's sockets in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/gateway_socket.h"
#include "base/result.h"

namespace sandbox {

// The address and port at which the agent finds the gateway. The address is the one OpenShell
// documents for its proxy.
inline constexpr char kProxyAddress[] = "10.200.0.1";
inline constexpr uint16_t kProxyPort = 3128;
// An address of IPv6 that is not ::1 (RFC 4193). It reaches the sandbox's own servers, as ::1 does.
inline constexpr char kOwnAddress6[] = "fd0a:c800::1";

struct Network {
  std::vector<GatewaySocket> gateway_sockets;
  // Empty if every connection is captured. Otherwise the reason why only those to certain ports
  // are; all others fail at once, unrecorded.
  std::string waiver;
};

// Prepares the calling process's own, empty network namespace: loopback up, `proxy_address` (IPv4,
// dotted) on it, every other address local too, so that each attempt to leave arrives at one of
// this program's sockets or fails at once. If the kernel cannot hand over connections to every
// port, it hands over those to `ports`. IPv6 is left out if the host has it switched off.
Result<Network> PrepareNetwork(const std::string& proxy_address, uint16_t proxy_port,
                               const std::vector<uint16_t>& ports);

// Opens a socket for the kernel's socket diagnostics (sock_diag(7)) of the caller's network
// namespace. Not valid where this kernel has none.
Fd OpenSocketDiagnostics();

}  // namespace sandbox
