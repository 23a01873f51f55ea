// SPDX-License-Identifier: Apache-2.0
// JSON-RPC and MCP: each stricter reading accepts less and says the same; a call is the same alone
// and in a batch.
#include <cstddef>
#include <cstdint>

#include "codec/call/json_rpc.h"
#include "codec/call/mcp_fields.h"

namespace {

using codec::JsonRpcRequest;

void CheckSameMethods(const JsonRpcRequest& a, const JsonRpcRequest& b) {
  ENSURE(a.calls.size() == b.calls.size() && a.has_response == b.has_response);
  for (size_t i = 0; i < a.calls.size(); ++i) ENSURE(a.calls[i].method == b.calls[i].method);
}

void CheckJson(std::string_view body) {
  Result<codec::Json> json = codec::ParseJson(body);
  if (!json.ok()) return;
  const std::string rendered = codec::RenderJsonLine(json.value());
  Result<codec::Json> again = codec::ParseJson(rendered);
  ENSURE(again.ok() && codec::RenderJsonLine(again.value()) == rendered);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  CheckJson(body);
  Result<codec::Json> json = codec::ParseJson(body);
  if (!json.ok()) return 0;
  Result<JsonRpcRequest> rpc = codec::ParseJsonRpc(json.value());
  Result<JsonRpcRequest> loose = codec::ParseMcp(json.value(), false);
  Result<JsonRpcRequest> strict = codec::ParseMcp(json.value(), true);
  ENSURE(!strict.ok() || loose.ok());
  ENSURE(!loose.ok() || rpc.ok());
  if (!rpc.ok()) return 0;
  ENSURE(!rpc.value().calls.empty() || rpc.value().has_response);
  if (loose.ok()) CheckSameMethods(loose.value(), rpc.value());
  if (rpc.value().is_batch) return 0;
  codec::Json list;
  list.Push(json.value());
  Result<JsonRpcRequest> batch = codec::ParseJsonRpc(list);
  ENSURE(batch.ok() && batch.value().is_batch);
  CheckSameMethods(batch.value(), rpc.value());
  // Without fields, exactly the requests of older revisions agree; as a batch, they do, too.
  const bool agrees = codec::CompareMcpFields({}, json.value()).ok();
  ENSURE(!agrees || codec::McpVersionOf(json.value()).empty());
  ENSURE(agrees == codec::CompareMcpFields({}, list).ok());
  return 0;
}
