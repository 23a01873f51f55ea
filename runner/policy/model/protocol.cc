// SPDX-License-Identifier: Apache-2.0
#include "policy/model/protocol.h"

#include <algorithm>

namespace policy {
namespace {

bool NamesOperation(const std::vector<HttpRule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const HttpRule& rule) { return !rule.operation_type.empty(); });
}

}  // namespace

std::string_view ProtocolName(Protocol protocol) {
  switch (protocol) {
    case Protocol::kL4:
      return "";
    case Protocol::kTcp:
      return "tcp";
    case Protocol::kRest:
      return "rest";
    case Protocol::kWebSocket:
      return "websocket";
    case Protocol::kGraphql:
      return "graphql";
    case Protocol::kSql:
      return "sql";
    case Protocol::kJsonRpc:
      return "json-rpc";
    case Protocol::kMcp:
      return "mcp";
  }
  return "";
}

std::vector<std::string_view> ProtocolNames() {
  std::vector<std::string_view> names;
  for (Protocol protocol :
       {Protocol::kTcp, Protocol::kRest, Protocol::kWebSocket, Protocol::kGraphql, Protocol::kSql,
        Protocol::kJsonRpc, Protocol::kMcp}) {
    names.push_back(ProtocolName(protocol));
  }
  return names;
}

bool JudgesRequests(Protocol protocol) {
  return protocol != Protocol::kL4 && protocol != Protocol::kTcp;
}

bool CarriesGraphql(const Endpoint& endpoint) {
  return endpoint.protocol == Protocol::kWebSocket &&
         (endpoint.allow_registered_queries || !endpoint.persisted_queries.empty() ||
          NamesOperation(endpoint.rules) || NamesOperation(endpoint.deny_rules));
}

}  // namespace policy
