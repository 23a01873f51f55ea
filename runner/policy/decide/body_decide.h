// SPDX-License-Identifier: Apache-2.0
// Requests that are judged by what their body says: GraphQL, JSON-RPC, MCP. A body that cannot be
// read as the protocol's request is refused, even under audit (OpenShell).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/call/graphql.h"
#include "codec/call/json_rpc.h"
#include "codec/wire/http_head.h"
#include "policy/decide/compiled.h"

namespace policy {

// A request up to its body. Everything is borrowed.
struct BodyRequest {
  HttpRequest request;
  const codec::HttpFields& fields;
  codec::BodyFraming framing;
};

// A verdict, and what was found in the body, for records.
struct JudgedBody {
  Verdict verdict;
  std::vector<codec::GraphqlOperation> operations;
  std::vector<codec::JsonRpcCall> calls;
  // Not empty if MCP has an error of its own for a refused request: the whole answer, a JSON-RPC
  // message.
  std::string mcp_answer = {};
};

// Returns the verdict on a request that Route::NeedsBody, if its head alone decides: an upgrade to
// WebSocket, whose messages would not be judged (refused, even under audit), a type or coding of
// body that cannot be judged, a length beyond the endpoint's bound, or a stream of mcp that only
// receives. Returns nullopt if the whole body is needed.
std::optional<Verdict> DecideBodyHead(const Route& route, const BodyRequest& asked);

// Returns the verdict on the request with its whole body.
JudgedBody DecideBody(const Route& route, const BodyRequest& asked, std::string_view body);

// Returns the verdict on a body longer than the endpoint's `body_bytes_max`.
Verdict DecideTooLong(const Route& route, std::string_view path);

}  // namespace policy
