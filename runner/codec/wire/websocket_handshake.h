// SPDX-License-Identifier: Apache-2.0
// The opening handshake of a WebSocket (RFC 6455, section 4), as seen by a gateway in the middle.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/wire/http_head.h"

namespace codec {

// Fails with kInvalid and what is wrong: not GET over HTTP/1.1, no `Connection: Upgrade`, a version
// other than 13, a key that is not 16 bytes, one of these fields twice.
Status CheckWebSocketRequest(const RequestHead& head);

// Returns whether an offer of extensions (a request's Sec-WebSocket-Extensions) has
// permessage-deflate in a form that `kWebSocketDeflateOffer` can take the place of.
bool OffersWebSocketDeflate(const HttpFields& fields);
// The offer that is made instead when messages are to be read: no message needs an earlier one.
inline constexpr std::string_view kWebSocketDeflateOffer =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

// Checks the 101 of a server that was asked with `key`. Fails with kInvalid: not a switch to
// WebSocket alone, a wrong Sec-WebSocket-Accept, fields twice.
Status CheckWebSocketResponse(const ResponseHead& head, std::string_view key);

// Returns whether such an answer agrees to permessage-deflate, after kWebSocketDeflateOffer alone
// was offered, or nothing at all. Fails with kInvalid: another extension, or one that keeps
// context.
Result<bool> AgreesToWebSocketDeflate(const HttpFields& fields, bool deflate_offered);

// Returns Sec-WebSocket-Accept for a key.
std::string WebSocketAccept(std::string_view key);

}  // namespace codec
