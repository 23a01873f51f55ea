// SPDX-License-Identifier: Apache-2.0
// The result of a decision: pointers into the compiled policy and a reason as a value. Text is
// rendered only for a record or a refusal, in OpenShell's wording, which tools and people search
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/model/policy.h"

namespace policy {

enum class Reason : uint8_t {
  kAllowed,
  // Connections.
  kNoPolicies,   // The policy opens no network at all.
  kNoEndpoint,   // No endpoint covers host and port.
  kOtherBinary,  // One does, but for other programs.
  // Requests, and WebSocket messages ("WEBSOCKET_TEXT /path").
  kNotPermitted,      // No rule allows it.
  kDenyRule,          // A deny rule fires.
  kMalformedPath,     // A path or query that no rule may be asked about.
  kNoUpgrade,         // A plain request to a WebSocket endpoint.
  kBodyNotJudged,     // The caller did not read the body.
  kUpgradeNotJudged,  // A WebSocket where something else is judged; `detail` is what.
  // GraphQL, over HTTP or in WebSocket messages.
  kGraphqlMalformed,     // `detail` says how.
  kGraphqlUnregistered,  // A persisted query that the policy does not know.
  kGraphqlBlocked,       // By a deny rule, or because no rule of an endpoint for GraphQL allows it.
  kGraphqlNotPermitted,  // No endpoint for GraphQL judged it, and no rule allows the request.
  // JSON-RPC and MCP.
  kRpcMalformed,  // `detail` says how.
  kRpcResponse,   // A response frame from client to server.
};

// One decision. The pointers are into the CompiledPolicy that made it and live as long.
struct Verdict {
  bool allowed = false;
  bool audited = false;  // Allowed only because the endpoint is in audit; a rule said no.
  Reason reason = Reason::kNoPolicies;
  // The policy whose endpoint decided; null if none matched.
  const NetworkPolicy* policy = nullptr;
  const Endpoint* endpoint = nullptr;  // The endpoint that decided; null if none matched.
  const HttpRule* rule = nullptr;      // The allow or deny rule that decided, if one did.
  // The endpoint with the narrowest path for this request: its protocol, enforcement, signing and
  // rewriting hold. Null for a connection, and where no endpoint asks about requests.
  const Endpoint* governing = nullptr;
  std::string detail;  // Says what is malformed, or what the reason asks for.

  std::string_view policy_name() const {
    return policy == nullptr ? std::string_view("-") : std::string_view(policy->name);
  }
  // True if `rule` is a deny rule: no further rule makes the endpoint allow this.
  bool by_deny_rule() const { return rule != nullptr && (!allowed || audited); }
  // Returns the place of the rule, else of the endpoint; line 0 if there is neither.
  codec::Position at() const;
};

}  // namespace policy
