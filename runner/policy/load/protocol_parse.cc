// SPDX-License-Identifier: Apache-2.0
#include "policy/load/protocol_parse.h"

#include <initializer_list>
#include <limits>

#include "policy/load/operation_parse.h"
#include "policy/model/endpoint_keys.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

using codec::YamlKind;
using codec::YamlNode;

constexpr uint32_t kBodyBytesMax = std::numeric_limits<uint32_t>::max();

class ProtocolKeyParser {
 public:
  ProtocolKeyParser(Reader* reader, const Fields& fields, Endpoint* endpoint)
      : reader_(*reader), fields_(fields), endpoint_(*endpoint) {}

  Status Parse() {
    TRY(ParseGraphql());
    TRY(ParseJsonRpc());
    TRY(ParseMcp());
    for (const EndpointKey& key : kEndpointKeys) TRY(ParseKey(key));
    TRY(ParseSigning());
    TRY(ParseBinding());
    return Ok();
  }

 private:
  bool Is(std::initializer_list<Protocol> protocols) const {
    for (Protocol protocol : protocols) {
      if (endpoint_.protocol == protocol) return true;
    }
    return false;
  }

  void WarnOfNoEffect(std::string_view key, std::string_view needed) {
    if (!fields_.Has(key)) return;
    reader_.Warn(fields_.At(key), "'" + std::string(key) + "' has no effect without 'protocol: " +
                                      std::string(needed) + "'");
  }

  Status ParseGraphql() {
    std::optional<size_t> mode =
        TRY(fields_.Choice("persisted_queries", {"deny", "allow_registered"}));
    std::vector<PersistedQuery> queries = TRY(ParsePersistedQueries(&reader_, fields_));
    uint32_t bytes =
        TRY(fields_.Number("graphql_max_body_bytes", endpoint_.body_bytes_max, 1, kBodyBytesMax));
    if (!Is({Protocol::kGraphql, Protocol::kWebSocket})) {
      WarnOfNoEffect("persisted_queries", "graphql");
      WarnOfNoEffect("graphql_persisted_queries", "graphql");
      WarnOfNoEffect("graphql_max_body_bytes", "graphql");
      return Ok();
    }
    endpoint_.allow_registered_queries = mode == 1U;
    endpoint_.persisted_queries = std::move(queries);
    endpoint_.body_bytes_max = bytes;
    if (!endpoint_.persisted_queries.empty() && !endpoint_.allow_registered_queries) {
      reader_.Warn(fields_.At("graphql_persisted_queries"),
                   "registered queries are refused without 'persisted_queries: allow_registered'");
    }
    return Ok();
  }

  Status ParseJsonRpc() {
    const YamlNode* node = fields_.Find("json_rpc");
    if (node == nullptr || node->kind == YamlKind::kNull) return Ok();
    Fields options = TRY(Fields::Open(&reader_, *node, Section::kJsonRpc));
    uint32_t bytes =
        TRY(options.Number("max_body_bytes", endpoint_.body_bytes_max, 1, kBodyBytesMax));
    if (Is({Protocol::kJsonRpc, Protocol::kMcp})) {
      endpoint_.body_bytes_max = bytes;
    } else {
      WarnOfNoEffect("json_rpc", "json-rpc");
    }
    return Ok();
  }

  Status ParseMcp() {
    const YamlNode* node = fields_.Find("mcp");
    if (node == nullptr || node->kind == YamlKind::kNull) return Ok();
    Fields options = TRY(Fields::Open(&reader_, *node, Section::kMcp));
    if (!Is({Protocol::kMcp})) {
      if (!fields_.Has("mcp")) return Ok();
      return reader_.Invalid(node->at, "'mcp' needs 'protocol: mcp'",
                             "remove 'mcp', or write 'protocol: mcp'");
    }
    endpoint_.body_bytes_max =
        TRY(options.Number("max_body_bytes", endpoint_.body_bytes_max, 1, kBodyBytesMax));
    endpoint_.mcp.strict_tool_names = TRY(options.Boolean("strict_tool_names", true));
    endpoint_.mcp.allow_all_known_methods =
        TRY(options.Boolean("allow_all_known_mcp_methods", false));
    return Ok();
  }

  Status ParseKey(const EndpointKey& key) {
    endpoint_.*key.member = TRY(fields_.Boolean(key.name, false));
    const bool labelled = Is({Protocol::kL4}) && endpoint_.access != Access::kNone;
    const Protocol protocol = labelled ? Protocol::kRest : endpoint_.protocol;
    if (!(endpoint_.*key.member) || MayHave(protocol, key)) return Ok();
    std::string needed;
    for (Protocol one : key.protocols) {
      needed += (needed.empty() ? "'protocol: " : " or 'protocol: ");
      needed += std::string(ProtocolName(one)) + "'";
    }
    return reader_.Invalid(
        fields_.At(key.name), "'" + std::string(key.name) + "' needs " + needed,
        "remove it, or write 'protocol: " + std::string(ProtocolName(key.protocols.front())) + "'");
  }

  Status ParseSigning() {
    std::optional<size_t> signing =
        TRY(fields_.Choice("credential_signing", {"sigv4", "sigv4:body", "sigv4:no_body"}));
    if (signing) endpoint_.signing = static_cast<Signing>(*signing + 1);
    endpoint_.signing_service = TRY(fields_.Text("signing_service"));
    endpoint_.signing_region = TRY(fields_.Text("signing_region"));
    if (!signing) {
      for (std::string_view key : {"signing_service", "signing_region"}) {
        if (!fields_.Has(key)) continue;
        reader_.Warn(fields_.At(key),
                     "'" + std::string(key) + "' has no effect without 'credential_signing'");
      }
      return Ok();
    }
    codec::Position at = fields_.At("credential_signing");
    if (endpoint_.signing_service.empty()) {
      return reader_.Invalid(at, "'credential_signing' needs a 'signing_service'",
                             "add 'signing_service: bedrock', using the service's name in AWS");
    }
    if (endpoint_.request_body_credential_rewrite) {
      return reader_.Invalid(
          at, "'credential_signing' and 'request_body_credential_rewrite' are mutually exclusive",
          "remove 'request_body_credential_rewrite'");
    }
    if (endpoint_.tls == TlsMode::kSkip) {
      return reader_.Invalid(at, "requests cannot be signed with 'tls: skip'",
                             "remove 'tls: skip', or 'credential_signing'");
    }
    return Ok();
  }

  Status ParseBinding() {
    const YamlNode* node = fields_.Find("credential_binding");
    if (node == nullptr || node->kind == YamlKind::kNull) return Ok();
    Fields binding = TRY(Fields::Open(&reader_, *node, Section::kCredentialBinding));
    endpoint_.credential_provider = TRY(binding.Text("provider"));
    if (!endpoint_.credential_provider.empty()) return Ok();
    return reader_.Invalid(node->at, "'credential_binding' needs a 'provider'",
                           "write 'credential_binding: {provider: NAME}'");
  }

  Reader& reader_;
  const Fields& fields_;
  Endpoint& endpoint_;
};

}  // namespace

Status ParseProtocolKeys(Reader* reader, const Fields& fields, Endpoint* endpoint) {
  return ProtocolKeyParser(reader, fields, endpoint).Parse();
}

}  // namespace policy
