// SPDX-License-Identifier: Apache-2.0
// What a TLS client says before anything is encrypted: which host it wants and which protocols it
// speaks. Read without answering, so that a connection can be judged first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace codec {

// All records of one ClientHello together. Real ones stay below 2 KiB; post-quantum key shares may
// double that.
inline constexpr size_t kClientHelloBytesMax = 16384;

struct ClientHello {
  std::string server_name;             // SNI (RFC 6066), lower case; empty: none was sent.
  std::vector<std::string> protocols;  // ALPN (RFC 7301), in the client's order; may be empty.
};

// Reads the ClientHello that the bytes of a connection begin with, over as many records as it takes
// (RFC 8446, 4.1.2 and 5.1; TLS 1.0 to 1.3). Nothing: it is well formed so far, more bytes are
// needed. Fails with kInvalid: not TLS, malformed, an extension twice, a server name that is no
// host name, more than one host name, or longer than kClientHelloBytesMax.
Result<std::optional<ClientHello>> ParseClientHello(std::string_view bytes);

}  // namespace codec
