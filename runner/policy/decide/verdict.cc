// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/verdict.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/join.h"
#include "policy/decide/compiled.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

// OpenShell's text, word for word: tools and people look for it.
constexpr std::string_view kSymlinkHint =
    "SYMLINK HINT: the binary path is the kernel-resolved target from /proc/<pid>/exe, not the "
    "symlink. If your policy specifies a symlink (e.g., /usr/bin/python3) but the actual binary is "
    "/usr/bin/python3.11, either: (1) use the canonical path in your policy (run 'readlink -f "
    "/usr/bin/python3' inside the sandbox), or (2) ensure symlink resolution is working (check "
    "sandbox logs for 'Cannot access container filesystem')";

// The policy names a program that may be a link to the caller: python3 beside python3.11.
bool MayBeLink(const NetworkPolicy& policy, std::string_view caller) {
  size_t name = caller.rfind('/') + 1;
  return std::any_of(policy.binaries.begin(), policy.binaries.end(), [&](std::string_view named) {
    return named.size() > name && caller.starts_with(named);
  });
}

std::string RenderMisses(const Route& route, const Caller& caller) {
  std::string misses;
  for (const NetworkPolicy* policy : route.missed()) {
    if (!misses.empty()) misses += "; ";
    misses += "binary '" + caller.binary + "' not allowed in policy '" + policy->key +
              "' (ancestors: [" + Join(caller.ancestors, " -> ") + "], cmdline: [" +
              Join(caller.cmdline, ", ") + "])";
    if (MayBeLink(*policy, caller.binary)) misses += ". " + std::string(kSymlinkHint);
  }
  return misses;
}

}  // namespace

codec::Position Verdict::at() const {
  if (rule != nullptr) return rule->at;
  return endpoint == nullptr ? codec::Position{} : endpoint->at;
}

namespace {

std::string RenderRule(const Verdict& verdict, const Route& route, const Caller& caller,
                       const HttpRequest& request) {
  std::string subject = std::string(request.method) + " " + std::string(request.path);
  switch (verdict.reason) {
    case Reason::kAllowed:
      return "allowed by policy '" + std::string(verdict.policy_name()) + "'";
    case Reason::kNoPolicies:
      return "network connections not allowed by policy";
    case Reason::kNoEndpoint:
      return "endpoint " + BracketedHost(route.host()) + ":" + std::to_string(route.port()) +
             " is not allowed by any policy";
    case Reason::kOtherBinary:
      return RenderMisses(route, caller);
    case Reason::kNotPermitted:
    case Reason::kMalformedPath:
      return subject + std::string(kNotPermitted);
    case Reason::kDenyRule:
      return subject + " blocked by deny rule";
    case Reason::kNoUpgrade:
      return subject + " not permitted by policy: the endpoint is for WebSocket upgrades";
    case Reason::kBodyNotJudged:
      return subject + " not permitted by policy: its body was not judged";
    case Reason::kUpgradeNotJudged:
      return subject + " not permitted by policy: the messages of a WebSocket are not judged by " +
             verdict.detail +
             " rules; an endpoint with 'protocol: websocket' for this path is needed";
    case Reason::kGraphqlMalformed:
      return "GraphQL request rejected: " + verdict.detail;
    case Reason::kGraphqlUnregistered:
      return "GraphQL persisted query is not registered";
    case Reason::kGraphqlBlocked:
      return "GraphQL operation blocked by endpoint policy";
    case Reason::kGraphqlNotPermitted:
      return "GraphQL operation not permitted by policy";
    case Reason::kRpcMalformed:
      return "JSON-RPC request rejected: " + verdict.detail;
    case Reason::kRpcResponse:
      return "JSON-RPC response frames are not permitted from client to server";
  }
  return {};
}

}  // namespace

std::string RenderReason(const Verdict& verdict, const Route& route, const Caller& caller,
                         const HttpRequest& request) {
  std::string reason = RenderRule(verdict, route, caller, request);
  const bool refused = verdict.reason != Reason::kAllowed && !verdict.allowed;
  if (refused && !route.narrowed_by().empty()) {
    reason.append(kNarrowedReason).append(route.narrowed_by());
  }
  return reason;
}

}  // namespace policy
