// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_wire.h"

#include "base/wire.h"

// Sends every member of a struct. A structured binding has as many names as there are members, so
// one that is missing here does not compile; the reloaded policy would silently be without it.
#define SEND_ALL(Type, ...)                   \
  template <typename Archive>                 \
  void Visit(Archive& archive, Type& value) { \
    auto& [__VA_ARGS__] = value;              \
    archive(__VA_ARGS__);                     \
  }

namespace codec {

SEND_ALL(Position, line, column)

}  // namespace codec

namespace policy {

SEND_ALL(QueryMatcher, key, any)
SEND_ALL(HttpRule, method, path, query, operation_type, operation_name, fields, tool, command, at)
SEND_ALL(PersistedQuery, id, operation_type, operation_name, fields)
SEND_ALL(McpOptions, strict_tool_names, allow_all_known_methods)
SEND_ALL(Endpoint, host, ports, path, protocol, protocol_implied, tls, enforcement, access, rules,
         deny_rules, only_reads, allowed_ips, allow_encoded_slash, websocket_credential_rewrite,
         request_body_credential_rewrite, allow_uninspected_credentials, signing, signing_service,
         signing_region, credential_provider, allow_registered_queries, persisted_queries,
         body_bytes_max, mcp, at)
SEND_ALL(NetworkPolicy, key, name, endpoints, binaries, at)
SEND_ALL(Middleware, name, order, fail_open, include, exclude, at)

// The gateway has no use for the other three; they must be named all the same.
template <typename Archive>
void Visit(Archive& archive, Policy& value) {
  auto& [filesystem, landlock, process, network, middlewares] = value;
  archive(network, middlewares);
}

}  // namespace policy

namespace gateway {

std::string RenderPolicyWire(const policy::Policy& policy) { return wire::Write(policy); }

std::optional<policy::Policy> ParsePolicyWire(std::string_view bytes) {
  policy::Policy policy;
  if (!wire::Read(bytes, policy)) return std::nullopt;
  return policy;
}

}  // namespace gateway
