// SPDX-License-Identifier: Apache-2.0
// The host that a TLS client requests (SNI), read from the first bytes of its connection without
// consuming or answering them, so that the connection can be judged before it is decided whether
// TLS is terminated.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gateway {

// Real ClientHellos stay below 2 KiB; post-quantum key shares may double that.
constexpr size_t kClientHelloBytesMax = 16384;

// Returns the server name (SNI, RFC 6066) of the ClientHello that `bytes` begin with, in lower
// case; empty if there is none. It is whatever the client wrote, and need not be a host name.
// Returns nullopt if more bytes are needed. Fails with kInvalid on bytes that OpenSSL does not take
// for a ClientHello, on the form that SSL 2.0 gave it, and on a server name that is empty or one of
// several.
Result<std::optional<std::string>> PeekServerName(std::string_view bytes);

}  // namespace gateway
