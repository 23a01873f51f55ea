// SPDX-License-Identifier: Apache-2.0
// JSON-RPC 2.0 and the Model Context Protocol on top of it, as far as policies need it: which
// methods and tools a body calls. Whatever OpenShell refuses is refused; so are member names that
// differ from the protocol's only in case, which some servers take for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/data/json.h"

namespace codec {

// The method of MCP that calls a tool.
inline constexpr std::string_view kToolsCall = "tools/call";

// A request, or a notification (a call without an id).
struct JsonRpcCall {
  std::string method;
  std::string tool;  // MCP's tools/call: its params.name. Otherwise empty.
};

// The content of one body: at least one call or response.
struct JsonRpcRequest {
  std::vector<JsonRpcCall> calls;  // In the order written.
  bool is_batch = false;
  bool has_response = false;  // At least one answer to a request of the server.
};

// Reads one message or a non-empty batch. Fails with kInvalid and what is wrong: `jsonrpc` other
// than "2.0", neither a method nor a result or error, a method that is not a string, is empty or
// stands beside a result or error, a response with both or without an id that is a string, a number
// or null, an error that is not an object. One bad item makes the batch bad. Params are not
// examined. CheckJsonBodyFields (json_body.h) checks the head of the request.
Result<JsonRpcRequest> ParseJsonRpc(const Json& json);

// Does the same for the Model Context Protocol: `tool` is filled in, the id of a request is a
// string or an integer, and the params of the methods that a client may call (its versions up to
// 2026-07-28) must have the shape that the protocol gives them. The name of a tool is 1 to 128 of
// [A-Za-z0-9_.-] when `strict_tool_names`; otherwise any string.
Result<JsonRpcRequest> ParseMcp(const Json& json, bool strict_tool_names);

}  // namespace codec
