// SPDX-License-Identifier: Apache-2.0
#include "gateway/policy_wire.h"

#include "base/wire.h"

namespace codec {

template <typename Archive>
void Visit(Archive& archive, codec::Position& value) {
  archive(value.line, value.column);
}

}  // namespace codec

namespace policy {

template <typename Archive>
void Visit(Archive& archive, QueryMatcher& value) {
  archive(value.key, value.any);
}
template <typename Archive>
void Visit(Archive& archive, HttpRule& value) {
  archive(value.method, value.path, value.query, value.operation_type, value.operation_name,
          value.fields, value.tool, value.command, value.at);
}
template <typename Archive>
void Visit(Archive& archive, PersistedQuery& value) {
  archive(value.id, value.operation_type, value.operation_name, value.fields);
}
template <typename Archive>
void Visit(Archive& archive, Endpoint& value) {
  archive(value.host, value.ports, value.path, value.protocol, value.protocol_implied, value.tls,
          value.enforcement, value.access, value.rules, value.deny_rules, value.allowed_ips,
          value.allow_encoded_slash, value.websocket_credential_rewrite,
          value.request_body_credential_rewrite, value.allow_uninspected_credentials, value.signing,
          value.signing_service, value.signing_region, value.credential_provider,
          value.allow_registered_queries, value.persisted_queries, value.body_bytes_max,
          value.mcp.strict_tool_names, value.mcp.allow_all_known_methods, value.at);
}
template <typename Archive>
void Visit(Archive& archive, NetworkPolicy& value) {
  archive(value.key, value.name, value.endpoints, value.binaries, value.at);
}
template <typename Archive>
void Visit(Archive& archive, Middleware& value) {
  archive(value.name, value.order, value.fail_open, value.include, value.exclude, value.at);
}

}  // namespace policy

namespace gateway {

std::string RenderPolicyWire(const policy::Policy& policy) {
  return wire::Write(policy.network, policy.middlewares);
}

std::optional<policy::Policy> ParsePolicyWire(std::string_view bytes) {
  policy::Policy policy;
  if (!wire::Read(bytes, policy.network, policy.middlewares)) return std::nullopt;
  return policy;
}

}  // namespace gateway
