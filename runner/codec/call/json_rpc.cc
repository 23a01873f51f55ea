// SPDX-License-Identifier: Apache-2.0
#include "codec/call/json_rpc.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "codec/call/json_body.h"

namespace codec {
namespace {

constexpr std::array<std::string_view, 6> kMemberNames = {"jsonrpc", "method", "params",
                                                          "id",      "result", "error"};

bool IsId(const Json& json) {
  return json.is_null() || json.string() != nullptr || json.number().has_value();
}

Status CheckResponse(const Json& message) {
  const Json* error = message.Find("error");
  if (message.Find("result") != nullptr && error != nullptr) {
    return Invalid("a response with both result and error");
  }
  const Json* id = message.Find("id");
  if (id == nullptr || !IsId(*id)) return Invalid("a response without a valid id");
  if (error != nullptr && error->object() == nullptr) return Invalid("the error is not an object");
  return Ok();
}

// Adds one message to `request`.
Status ReadMessage(const Json& message, JsonRpcRequest* request) {
  if (message.object() == nullptr) return Invalid("the message is not an object");
  TRY(CheckMemberNames(message, kMemberNames));
  if (message.StringAt("jsonrpc") != "2.0") return Invalid("\"jsonrpc\" is not \"2.0\"");
  const Json* method = message.Find("method");
  const bool is_response = message.Find("result") != nullptr || message.Find("error") != nullptr;
  if (method != nullptr && is_response) return Invalid("both a method and a result or an error");
  if (is_response) {
    request->has_response = true;
    return CheckResponse(message);
  }
  if (method == nullptr || method->string() == nullptr || method->string()->empty()) {
    return Invalid("no method");
  }
  request->calls.push_back({*method->string(), {}});
  return Ok();
}

// The form that a member of a method's params must have.
enum class Shape { kString, kObject, kNumber, kId, kStringMap };
struct Param {
  std::string_view method;
  std::string_view name;
  Shape shape;
  bool required = true;
};
constexpr bool kOptional = false;

// The Model Context Protocol's schema, versions 2024-11-05 to 2026-07-28, as far as all agree.
constexpr auto kParams = std::to_array<Param>({
    {"initialize", "protocolVersion", Shape::kString},
    {"initialize", "capabilities", Shape::kObject},
    {"initialize", "clientInfo", Shape::kObject},
    {kToolsCall, "name", Shape::kString},
    {kToolsCall, "arguments", Shape::kObject, kOptional},
    {"tools/list", "cursor", Shape::kString, kOptional},
    {"resources/list", "cursor", Shape::kString, kOptional},
    {"resources/templates/list", "cursor", Shape::kString, kOptional},
    {"resources/read", "uri", Shape::kString},
    {"resources/subscribe", "uri", Shape::kString},
    {"resources/unsubscribe", "uri", Shape::kString},
    {"prompts/list", "cursor", Shape::kString, kOptional},
    {"prompts/get", "name", Shape::kString},
    {"prompts/get", "arguments", Shape::kStringMap, kOptional},
    {"completion/complete", "ref", Shape::kObject},
    {"completion/complete", "argument", Shape::kObject},
    {"logging/setLevel", "level", Shape::kString},
    {"tasks/get", "taskId", Shape::kString},
    {"tasks/result", "taskId", Shape::kString},
    {"tasks/cancel", "taskId", Shape::kString},
    {"tasks/list", "cursor", Shape::kString, kOptional},
    {"tasks/update", "taskId", Shape::kString},
    {"subscriptions/listen", "notifications", Shape::kObject},
    {"notifications/cancelled", "requestId", Shape::kId, kOptional},
    {"notifications/progress", "progressToken", Shape::kId},
    {"notifications/progress", "progress", Shape::kNumber},
});

bool HasShape(const Json& json, Shape shape) {
  switch (shape) {
    case Shape::kString:
      return json.string() != nullptr;
    case Shape::kObject:
      return json.object() != nullptr;
    case Shape::kNumber:
      return json.number().has_value();
    case Shape::kId:
      return json.string() != nullptr || json.number().has_value();
    case Shape::kStringMap:
      return json.object() != nullptr &&
             std::all_of(json.object()->begin(), json.object()->end(),
                         [](const Json::Member& m) { return m.second.string() != nullptr; });
  }
  return false;
}

Status CheckParams(std::string_view method, const Json* params) {
  if (params != nullptr && params->object() == nullptr)
    return Invalid("the params are not an object");
  for (const Param& param : kParams) {
    if (param.method != method) continue;
    if (params != nullptr) TRY(CheckMemberNames(*params, {&param.name, 1}));
    const Json* member = params == nullptr ? nullptr : params->Find(param.name);
    if (member == nullptr ? param.required : !HasShape(*member, param.shape)) {
      return Invalid("params." + std::string(param.name) + " of " + std::string(method) +
                     " is missing or of the wrong type");
    }
  }
  return Ok();
}

bool IsStrictToolName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return ascii::IsAlphanumeric(c) || c == '_' || c == '.' || c == '-';
  });
}

// One message and the call that was read from it.
Status CheckMcpCall(const Json& message, bool strict_tool_names, JsonRpcCall* call) {
  const Json* id = message.Find("id");
  if (id != nullptr && id->string() == nullptr && !id->integer()) {
    return Invalid("the id is neither a string nor an integer");
  }
  const Json* params = message.Find("params");
  if (params != nullptr && params->is_null()) params = nullptr;
  TRY(CheckParams(call->method, params));
  if (call->method != kToolsCall) return Ok();
  call->tool = params->StringAt("name");
  if (strict_tool_names && !IsStrictToolName(call->tool)) return Invalid("invalid tool name");
  return Ok();
}

}  // namespace

Result<JsonRpcRequest> ParseJsonRpc(const Json& json) {
  JsonRpcRequest request;
  if (json.array() == nullptr) {
    TRY(ReadMessage(json, &request));
    return request;
  }
  request.is_batch = true;
  if (json.array()->empty()) return Invalid("an empty batch");
  for (const Json& message : *json.array()) TRY(ReadMessage(message, &request));
  return request;
}

Result<JsonRpcRequest> ParseMcp(const Json& json, bool strict_tool_names) {
  JsonRpcRequest request = TRY(ParseJsonRpc(json));
  if (json.array() == nullptr) {
    if (!request.calls.empty()) {
      TRY(CheckMcpCall(json, strict_tool_names, &request.calls.front()));
    }
    return request;
  }
  size_t next_call = 0;
  for (const Json& message : *json.array()) {
    if (message.Find("method") == nullptr) continue;
    TRY(CheckMcpCall(message, strict_tool_names, &request.calls[next_call++]));
  }
  return request;
}

}  // namespace codec
