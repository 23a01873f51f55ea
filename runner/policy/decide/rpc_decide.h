// SPDX-License-Identifier: Apache-2.0
// JSON-RPC and the Model Context Protocol. OpenShell's rules: calls are made with POST, every one
// of a batch must be allowed. An answer of the client's is refused with json-rpc, and passes with
// mcp, where servers ask, too.
#pragma once

#include "codec/call/json_rpc.h"
#include "policy/decide/compiled.h"

namespace policy {

// May a request make these calls? `body` is all that it holds.
Verdict DecideRpc(const Route& route, const HttpRequest& request,
                  const codec::JsonRpcRequest& body);

// A GET without a body that accepts text/event-stream: how mcp receives the server's messages.
// Refused with json-rpc.
Verdict DecideReceiveStream(const Route& route, const HttpRequest& request);

}  // namespace policy
