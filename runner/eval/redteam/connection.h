// SPDX-License-Identifier: Apache-2.0
// Connections of the hostile agent, with a limit of time for each step, and servers to reach for.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "eval/redteam/probe.h"

namespace redteam {

// Connects a stream to an address ("192.0.2.1", "2001:db8::1") and port. Through: it is connected.
Attempt ConnectTo(const std::string& address, int port, Fd* connection = nullptr);
// Does the same for the proxy that the environment names.
Attempt ConnectToProxy(Fd* connection);
// Does the same for a Unix socket: a path, or behind '@' an abstract name.
Attempt ConnectUnix(const std::string& name);
// Sends a datagram there, and waits a moment for an answer or an error.
Attempt SendDatagram(const std::string& address, int port, std::string_view bytes,
                     std::string* answer = nullptr);
// Returns a server that accepts nothing by itself, at `address`; on loopback, at a free port.
Result<Fd> Listen(int family, const void* address, socklen_t size);
Result<Fd> ListenOnLoopback(int* port);
// Reads what comes within a few seconds: until the end, or `bytes_max`; empty if nothing comes.
std::string ReadAnswer(const Fd& connection, size_t bytes_max, bool* ended);

}  // namespace redteam
