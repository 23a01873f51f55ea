// SPDX-License-Identifier: Apache-2.0
// The internals of CompiledPolicy. Only the decisions include this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/glob/glob.h"
#include "policy/decide/compiled.h"
#include "policy/decide/http_rules.h"
#include "policy/model/policy.h"

namespace policy {

// A rule over GraphQL operations.
struct GraphqlRule {
  const HttpRule* source = nullptr;
  std::optional<codec::Glob> name;  // nullopt matches any.
  bool any_field = true;
  std::vector<codec::Glob> fields;
};

// A rule over JSON-RPC calls.
struct RpcRule {
  const HttpRule* source = nullptr;
  codec::Glob method;               // mcp; json-rpc compares the text.
  std::optional<codec::Glob> tool;  // nullopt matches any call, also one without a tool.
};

struct CompiledEndpoint {
  const NetworkPolicy* policy = nullptr;
  const Endpoint* source = nullptr;
  uint32_t policy_number = 0;  // In Policy::network.

  // The host, when it is a pattern; otherwise compared as text.
  std::optional<codec::Glob> host;
  // Both dialects must match a path, as in OpenShell: the crossing one selects the endpoint whose
  // options hold, the other is asked again with the rules.
  codec::PathSelector selector{""};
  std::optional<codec::Glob> path;  // nullopt matches every path.
  size_t specificity = 0;

  HttpRules allow;
  HttpRules deny;
  std::vector<GraphqlRule> graphql_allow;
  std::vector<GraphqlRule> graphql_deny;
  std::vector<RpcRule> rpc_allow;
  std::vector<RpcRule> rpc_deny;
  bool names_tools = false;  // Some allow rule names a tool.

  Protocol protocol() const { return source->protocol; }
  bool is_rpc() const {
    return source->protocol == Protocol::kJsonRpc || source->protocol == Protocol::kMcp;
  }
  // True also for SQL, which can only be audited (OpenShell).
  bool audits() const {
    return source->enforcement == Enforcement::kAudit || source->protocol == Protocol::kSql;
  }
  bool CoversHost(std::string_view canonical) const;
  bool JudgesPath(std::string_view path_text) const {
    return !path.has_value() || path->Matches(path_text);
  }
};

// Programs by a pattern, and the policies that name it.
struct BinaryPattern {
  codec::Glob glob;
  std::vector<uint32_t> policies;
};

struct CompiledTables {
  Policy source;
  std::vector<CompiledEndpoint> endpoints;  // In the order of the policies' keys.
  std::map<std::string, std::vector<uint32_t>, std::less<>> binaries;  // Exact paths: policies.
  std::vector<BinaryPattern> binary_patterns;

  // Returns the endpoints that cover host and port, in order.
  std::vector<const CompiledEndpoint*> FindEndpoints(std::string_view canonical,
                                                     uint16_t port) const;
};

}  // namespace policy
