// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/rpc_decide.h"

#include <algorithm>
#include <vector>

#include "codec/call/json_rpc.h"
#include "codec/wire/http_head.h"
#include "policy/decide/judge.h"

namespace policy {
namespace {

using codec::JsonRpcCall;

bool RuleMatches(const CompiledEndpoint& endpoint, const RpcRule& rule, const JsonRpcCall& call) {
  if (endpoint.protocol() == Protocol::kJsonRpc) {
    return rule.source->method == "*" || rule.source->method == call.method;
  }
  if (!rule.method.Matches(call.method)) return false;
  return !rule.tool.has_value() ||
         (call.method == codec::kToolsCall && rule.tool->Matches(call.tool));
}

const HttpRule* FindRule(const CompiledEndpoint& endpoint, const std::vector<RpcRule>& rules,
                         const JsonRpcCall& call) {
  auto found = std::find_if(rules.begin(), rules.end(),
                            [&](const RpcRule& rule) { return RuleMatches(endpoint, rule, call); });
  return found == rules.end() ? nullptr : found->source;
}

// Returns the verdict of an endpoint for calls on one of them, made with POST.
EndpointVerdict ExamineCall(const CompiledEndpoint& endpoint, const JsonRpcCall& call) {
  const HttpRule* rule = FindRule(endpoint, endpoint.rpc_deny, call);
  if (rule != nullptr) return {EndpointVerdict::kDenied, rule, Reason::kDenyRule};
  rule = FindRule(endpoint, endpoint.rpc_allow, call);
  if (rule != nullptr) return {EndpointVerdict::kAllowed, rule, Reason::kAllowed};
  // Every method; but where a rule names a tool, the rules alone say which tools.
  bool narrowed = call.method == codec::kToolsCall && endpoint.names_tools;
  bool all = endpoint.protocol() == Protocol::kMcp && endpoint.source->mcp.allow_all_known_methods;
  if (all && !narrowed) return {EndpointVerdict::kAllowed, nullptr, Reason::kAllowed};
  return {};
}

EndpointVerdict ExamineResponse(const CompiledEndpoint& endpoint) {
  if (endpoint.protocol() == Protocol::kJsonRpc) {
    return {EndpointVerdict::kDenied, nullptr, Reason::kRpcResponse};
  }
  return {EndpointVerdict::kAllowed, nullptr, Reason::kAllowed};
}

// Every message of `body`, for one reading of the request's path.
Verdict DecideCalls(const Route& route, const HttpRequest& request,
                    const codec::JsonRpcRequest& body) {
  bool post = request.method == "POST";
  // One message: a call, or with null an answer.
  auto decide = [&](const JsonRpcCall* call) {
    return Judge(route).Decide(request.path, Reason::kNotPermitted,
                               [&](const CompiledEndpoint& endpoint) -> EndpointVerdict {
                                 if (!endpoint.is_rpc()) return ExamineHead(endpoint, request);
                                 if (!post) return {};
                                 return call == nullptr ? ExamineResponse(endpoint)
                                                        : ExamineCall(endpoint, *call);
                               });
  };
  Verdict first;
  bool asked = false;
  if (body.has_response) {
    first = decide(nullptr);
    asked = true;
    if (!first.allowed) return first;
  }
  for (const JsonRpcCall& call : body.calls) {
    Verdict verdict = decide(&call);
    if (!verdict.allowed) return verdict;
    if (!asked || (verdict.audited && !first.audited)) first = std::move(verdict);
    asked = true;
  }
  return first;
}

}  // namespace

Verdict DecideRpc(const Route& route, const HttpRequest& request,
                  const codec::JsonRpcRequest& body) {
  if (!route.connection().allowed) return route.connection();
  std::string_view fault = RequestFault(request.path, request.query);
  if (!fault.empty() || (body.calls.empty() && !body.has_response)) {
    return route.RefuseMalformed(Reason::kMalformedPath, request.path, fault);
  }
  const Endpoint* governing = route.GoverningEndpoint(request.path);
  if (body.has_response && governing != nullptr && governing->protocol == Protocol::kJsonRpc) {
    return route.RefuseMalformed(Reason::kRpcResponse, request.path, {});  // In audit, too.
  }
  return DecideReadings(request,
                        [&](const HttpRequest& read) { return DecideCalls(route, read, body); });
}

Verdict DecideReceiveStream(const Route& route, const HttpRequest& request) {
  if (!route.connection().allowed) return route.connection();
  std::string_view fault = RequestFault(request.path, request.query);
  if (!fault.empty()) return route.RefuseMalformed(Reason::kMalformedPath, request.path, fault);
  return DecideReadings(request, [&](const HttpRequest& read) {
    return Judge(route).Decide(read.path, Reason::kNotPermitted,
                               [&](const CompiledEndpoint& endpoint) -> EndpointVerdict {
                                 if (endpoint.protocol() != Protocol::kMcp)
                                   return ExamineHead(endpoint, read);
                                 return {EndpointVerdict::kAllowed, nullptr, Reason::kAllowed};
                               });
  });
}

}  // namespace policy
