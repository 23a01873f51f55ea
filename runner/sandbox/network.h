// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// Prepares the calling process's own, empty network namespace: loopback up, `address` on it, and a
// listening socket at address:port. There is no other interface, so that socket, once handed to the
// gateway outside, is the only way out. `address` is IPv4, dotted.
Result<Fd> ListenOnLoopback(const std::string& address, uint16_t port);

// A socket for the kernel's socket diagnostics (sock_diag(7)) of the caller's network namespace.
// Not valid where this kernel has none.
Fd OpenSocketDiagnostics();

}  // namespace sandbox
