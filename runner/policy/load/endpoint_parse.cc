// SPDX-License-Identifier: Apache-2.0
#include "policy/load/endpoint_parse.h"

#include "policy/load/call_parse.h"
#include "policy/load/protocol_parse.h"
#include "policy/load/rule_parse.h"
#include "policy/model/access.h"
#include "policy/model/destination.h"
#include "policy/model/endpoint_keys.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

using codec::YamlKind;
using codec::YamlNode;

// One endpoint in the making: the value, and what the checks need beside it.
class EndpointParser {
 public:
  EndpointParser(Reader* reader, const Fields& fields) : reader_(*reader), fields_(fields) {}

  Result<Endpoint> Parse() {
    endpoint_.at = fields_.at();
    size_t kept = reader_.errors.size();
    reader_.Keep(ParsePorts());
    reader_.Keep(ParseModes());
    reader_.Keep(ParseHost());
    reader_.Keep(ParsePath());
    // The rest depends on what was said so far.
    if (reader_.errors.size() > kept) return std::move(endpoint_);
    if (endpoint_.protocol == Protocol::kTcp) TRY(RefuseRequestKeys());
    TRY(ParseProtocolKeys(&reader_, fields_, &endpoint_));
    TRY(ParseRequestRules());
    WarnOfPitfalls();
    return std::move(endpoint_);
  }

 private:
  Result<uint16_t> ParsePort(const YamlNode& node) const {
    std::optional<uint64_t> port = codec::YamlUnsigned(node);
    if (!port || *port > 65535) {
      return reader_.Invalid(node.at, "a port must be a number from 1 to 65535",
                             "write 'port: 443'");
    }
    return static_cast<uint16_t>(*port);
  }

  Status ParsePorts() {
    const YamlNode* ports = TRY(fields_.List("ports"));
    bool several = ports != nullptr && !ports->items.empty();
    const YamlNode* port = fields_.Find("port");
    uint16_t single = 0;
    if (port != nullptr && port->kind != YamlKind::kNull) single = TRY(ParsePort(*port));
    if (several && single != 0) {
      return reader_.Invalid(fields_.At("ports"), "'port' and 'ports' are mutually exclusive",
                             "write all of them in 'ports'");
    }
    if (several) {
      for (const YamlNode& item : ports->items) {
        uint16_t number = TRY(ParsePort(item));
        if (number == 0)
          return reader_.Invalid(item.at, "a port must be a number from 1 to 65535",
                                 "write 'port: 443'");
        endpoint_.ports.push_back(number);
      }
    } else if (single != 0) {
      endpoint_.ports.push_back(single);
    }
    if (endpoint_.ports.empty()) {
      return reader_.Invalid(fields_.at(), "an endpoint must declare at least one port",
                             "write 'port: 443'");
    }
    return Ok();
  }

  Status ParseModes() {
    std::optional<size_t> protocol = TRY(fields_.Choice("protocol", ProtocolNames(), true));
    if (protocol) endpoint_.protocol = static_cast<Protocol>(*protocol + 1);
    auto choice = [&](std::string_view key, const std::vector<std::string_view>& values) {
      return reader_.Keep(fields_.Choice(key, values)).value_or(std::nullopt);
    };
    std::optional<size_t> tls = choice("tls", {"skip", "terminate", "passthrough"});
    if (tls == 0U) endpoint_.tls = TlsMode::kSkip;
    if (tls && *tls > 0) {
      reader_.Warn(fields_.At("tls"), "this value of 'tls' is deprecated and means the default");
    }
    std::optional<size_t> enforcement = choice("enforcement", {"enforce", "audit"});
    if (enforcement == 1U) endpoint_.enforcement = Enforcement::kAudit;
    if (endpoint_.protocol == Protocol::kSql && endpoint_.enforcement == Enforcement::kEnforce) {
      return reader_.Invalid(fields_.At(enforcement ? "enforcement" : "protocol"),
                             "sql cannot be enforced, only recorded", "write 'enforcement: audit'");
    }
    std::optional<size_t> access = choice("access", AccessNames());
    if (access) endpoint_.access = static_cast<Access>(*access + 1);
    return Ok();
  }

  Status ParseHost() {
    std::string written = TRY(fields_.Text("host"));
    endpoint_.host = CanonicalHost(written);
    endpoint_.allowed_ips = TRY(fields_.Texts("allowed_ips"));
    TRY(CheckAllowedIps(&reader_, fields_.At("allowed_ips"), endpoint_.allowed_ips));
    std::string fault;
    if (endpoint_.protocol == Protocol::kTcp) {
      fault = TcpHostFault(written);
    } else if (endpoint_.host.empty()) {
      if (endpoint_.protocol == Protocol::kMcp)
        fault = "is missing, and 'protocol: mcp' requires it";
      if (endpoint_.allowed_ips.empty()) fault = "is missing, and there are no 'allowed_ips'";
    } else {
      fault = HostFault(endpoint_.host);
    }
    if (fault.empty()) return Ok();
    std::string shown = written.empty() ? "" : " '" + written + "'";
    bool tcp = endpoint_.protocol == Protocol::kTcp;
    return reader_.Invalid(fields_.At("host"), "host" + shown + " " + fault,
                           tcp ? "write a name, like 'host: db.example.com'"
                               : "write 'host: api.example.com', or 'host: \"*.example.com\"'");
  }

  Status ParsePath() {
    endpoint_.path = TRY(fields_.Text("path"));
    const std::string& path = endpoint_.path;
    if (path.empty()) return Ok();
    if (!path.starts_with('/') && path != "**") {
      return reader_.Invalid(fields_.At("path"), "'path' must start with '/' or be '**'",
                             "write 'path: /" + path + "'");
    }
    TRY(CheckGlob(reader_, fields_.At("path"), "path", path, '/'));
    return Ok();
  }

  // A raw connection has no requests that any of these could be about.
  Status RefuseRequestKeys() const {
    for (std::string_view key :
         {"access", "rules", "deny_rules", "enforcement", "path", "persisted_queries",
          "graphql_persisted_queries", "graphql_max_body_bytes", "json_rpc", "mcp",
          "credential_signing", "signing_service", "signing_region", "credential_binding"}) {
      TRY(RefuseRequestKey(key));
    }
    for (const EndpointKey& key : kEndpointKeys) {
      if (!MayHave(Protocol::kTcp, key)) TRY(RefuseRequestKey(key.name));
    }
    return Ok();
  }

  Status RefuseRequestKey(std::string_view key) const {
    if (!fields_.Has(key)) return Ok();
    return reader_.Invalid(
        fields_.At(key),
        "'protocol: tcp' has no requests, so '" + std::string(key) + "' cannot apply",
        "remove '" + std::string(key) + "', or write 'protocol: rest'");
  }

  // Checks what the protocol needs for any request to pass.
  Status CheckBase(const YamlNode* rules) const {
    bool has_access = endpoint_.access != Access::kNone;
    Protocol protocol = endpoint_.protocol;
    std::string written = "'protocol: " + std::string(ProtocolName(protocol)) + "'";
    if (rules != nullptr && has_access) {
      return reader_.Invalid(rules->at, "'rules' and 'access' are mutually exclusive",
                             "remove 'access', or 'rules'");
    }
    bool is_call = protocol == Protocol::kJsonRpc || protocol == Protocol::kMcp;
    if (is_call && has_access) {
      return reader_.Invalid(fields_.At("access"), written + " has no access presets",
                             protocol == Protocol::kMcp
                                 ? "write 'mcp: {allow_all_known_mcp_methods: true}'"
                                 : "write 'rules: [{allow: {method: \"*\"}}]'");
    }
    if (rules != nullptr || has_access || !JudgesRequests(protocol)) return Ok();
    if (is_call && !endpoint_.mcp.allow_all_known_methods) {
      return reader_.Invalid(fields_.at(), written + " needs 'rules'",
                             "add 'rules: [{allow: {method: initialize}}]'");
    }
    if (is_call) return Ok();
    return reader_.Invalid(fields_.at(), written + " needs 'rules' or 'access'",
                           "add 'access: read-only'");
  }

  Status ParseRequestRules() {
    const YamlNode* rules = TRY(fields_.List("rules"));
    const YamlNode* deny_rules = TRY(fields_.List("deny_rules"));
    TRY(CheckBase(rules));
    for (const YamlNode* list : {rules, deny_rules}) {
      if (list != nullptr && !JudgesRequests(endpoint_.protocol)) {
        return reader_.Invalid(list->at, "request rules need a 'protocol'", "add 'protocol: rest'");
      }
    }
    size_t kept = reader_.errors.size();
    if (rules != nullptr) endpoint_.rules = TRY(ParseRules(&reader_, endpoint_, *rules));
    if (deny_rules != nullptr) {
      endpoint_.deny_rules = TRY(ParseDenyRules(&reader_, endpoint_, *deny_rules));
    }
    if (reader_.errors.size() > kept) return Ok();  // The checks below need all of them.
    TRY(CheckToolConflicts(reader_, endpoint_));
    TRY(CheckTextRules());
    if (endpoint_.mcp.allow_all_known_methods && rules == nullptr) {
      endpoint_.rules = {RequestRule("*", "", fields_.At("mcp"))};
    }
    if (endpoint_.access == Access::kNone) return Ok();
    bool label = endpoint_.protocol == Protocol::kL4 && endpoint_.tls == TlsMode::kSkip;
    if (label) return Ok();  // A tunnel with a label.
    if (endpoint_.protocol == Protocol::kL4) {
      endpoint_.protocol = Protocol::kRest;
      endpoint_.protocol_implied = true;
    }
    endpoint_.rules = ExpandAccess(endpoint_.protocol, endpoint_.access, fields_.At("access"));
    return Ok();
  }

  // Once messages are judged as GraphQL, a rule for any text message promises what it cannot give.
  Status CheckTextRules() const {
    if (!CarriesGraphql(endpoint_)) return Ok();
    for (const HttpRule& rule : endpoint_.rules) {
      if (rule.method != "WEBSOCKET_TEXT") continue;
      return reader_.Invalid(
          rule.at,
          "WEBSOCKET_TEXT cannot be combined with GraphQL rules: messages are judged by operation",
          "write 'operation_type: subscription' instead of the method");
    }
    return Ok();
  }

  void WarnOfPitfalls() {
    std::string warning = HostWarning(endpoint_.host);
    if (!warning.empty()) reader_.Warn(fields_.At("host"), warning);
    if (endpoint_.host.empty()) {
      reader_.Warn(
          fields_.At("allowed_ips"),
          "an endpoint without a 'host' is for every name: each that the agent asks for is "
          "looked up, so it can tell any name server something; name the hosts");
    }
    bool has_access = endpoint_.access != Access::kNone;
    if (endpoint_.tls == TlsMode::kSkip && (has_access || JudgesRequests(endpoint_.protocol))) {
      reader_.Warn(
          fields_.At("tls"),
          "with 'tls: skip', requests over TLS cannot be inspected: only the connection is judged");
    } else if (has_access && !fields_.Has("protocol")) {
      reader_.Warn(fields_.At("access"),
                   "OpenShell treats 'access' without 'protocol' as a label only; here it is "
                   "enforced, and requests are inspected");
    }
    if (!endpoint_.path.empty() && endpoint_.protocol == Protocol::kL4) {
      reader_.Warn(fields_.At("path"), "'path' without a 'protocol' has no effect");
    }
    if (endpoint_.enforcement == Enforcement::kAudit) {
      reader_.Warn(fields_.At("enforcement"),
                   "audit: requests that the rules deny are allowed and recorded");
    }
    for (const std::vector<HttpRule>* rules : {&endpoint_.rules, &endpoint_.deny_rules}) {
      for (const HttpRule& rule : *rules) {
        if (!HasShortStar(rule.path)) continue;
        reader_.Warn(rule.at,
                     "'*' in path '" + rule.path +
                         "' matches within one segment, although OpenShell's documentation lets it "
                         "cross '/'; write '**' as a whole segment to cross");
      }
    }
  }

  Reader& reader_;
  const Fields& fields_;
  Endpoint endpoint_;
};

}  // namespace

Result<Endpoint> ParseEndpoint(Reader* reader, const YamlNode& node) {
  if (node.kind == YamlKind::kScalar) {
    return reader->Invalid(node.at, "an endpoint must be a mapping",
                           "write '- {host: api.example.com, port: 443}'");
  }
  Fields fields = TRY(Fields::Open(reader, node, Section::kEndpoint));
  return EndpointParser(reader, fields).Parse();
}

Status CheckAllowedIps(Reader* reader, codec::Position at,
                       const std::vector<std::string>& entries) {
  constexpr int kWidePrefix = 16;
  for (const std::string& entry : entries) {
    std::string why_not;
    if (!ValidateAllowedIp(entry, &why_not)) {
      return reader->Invalid(at, "allowed address '" + entry + "' " + why_not,
                             "write an address, or CIDR like 10.1.2.0/24");
    }
    size_t slash = entry.find('/');
    if (slash == std::string::npos) continue;
    int prefix = 0;
    for (char c : entry.substr(slash + 1)) prefix = prefix * 10 + (c - '0');
    if (prefix < kWidePrefix) {
      reader->Warn(at, "allowed address '" + entry + "' is broader than /16");
    }
  }
  return Ok();
}

}  // namespace policy
