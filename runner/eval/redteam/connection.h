// SPDX-License-Identifier: Apache-2.0
// Connections of the hostile agent, with a limit of time for each step.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "eval/redteam/probe.h"

namespace redteam {

// Connects a stream to an address ("192.0.2.1", "2001:db8::1") and port. Through: it is connected.
Attempt ConnectTo(const std::string& address, int port, Fd* connection = nullptr);
// The same for a Unix socket: a path, or behind '@' an abstract name.
Attempt ConnectUnix(const std::string& name);
// Sends a datagram there, and waits a moment for an answer or an error.
Attempt SendDatagram(const std::string& address, int port, std::string_view bytes,
                     std::string* answer = nullptr);
// What comes within a few seconds: until the end, or `bytes_max`; empty: nothing.
std::string ReadAnswer(const Fd& connection, size_t bytes_max, bool* ended);

}  // namespace redteam
