// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "policy/decide/body_decide.h"
#include "policy/decide/compiled.h"

namespace policy {

// True if the messages of a WebSocket that was opened at `path` are judged: the governing endpoint,
// of the path as any server reads it, is for websocket. Otherwise (L4) an allowed upgrade is a raw
// relay.
bool JudgesMessages(const Route& route, std::string_view path);

// Decides whether the client may send this text message. `upgrade` is the request that opened the
// WebSocket; the message is judged as the method WEBSOCKET_TEXT there. Where the endpoint carries
// GraphQL rules, the message must be one of graphql-transport-ws or graphql-ws: those that open,
// close or keep alive pass, `subscribe` and `start` are judged by the operation they carry, and
// anything else is malformed.
JudgedBody DecideMessage(const Route& route, const HttpRequest& upgrade, std::string_view text);

// Decides whether the client may send binary messages. They are not read, so they pass only where a
// text message passes whatever it says. Under GraphQL rules they are malformed.
Verdict DecideBinaryMessage(const Route& route, const HttpRequest& upgrade);

}  // namespace policy
