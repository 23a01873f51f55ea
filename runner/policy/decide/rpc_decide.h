// SPDX-License-Identifier: Apache-2.0
// JSON-RPC and the Model Context Protocol. OpenShell's rules: calls are made with POST, every one
// of a batch must be allowed. A response from the client is refused with json-rpc; it passes with
// mcp, where servers send requests too.
#pragma once

#include "codec/call/json_rpc.h"
#include "policy/decide/compiled.h"

namespace policy {

// Decides whether a request may make these calls. `body` is all that it holds.
Verdict DecideRpc(const Route& route, const HttpRequest& request,
                  const codec::JsonRpcRequest& body);

// Decides on a GET without a body that accepts text/event-stream: how mcp receives the server's
// messages. Refused with json-rpc.
Verdict DecideReceiveStream(const Route& route, const HttpRequest& request);

}  // namespace policy
