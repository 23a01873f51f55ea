// SPDX-License-Identifier: Apache-2.0
#include "policy/network_parse.h"

#include <algorithm>

#include "codec/glob.h"
#include "policy/access.h"
#include "policy/destination.h"
#include "policy/host_pattern.h"
#include "policy/rule_parse.h"

namespace policy {
namespace {

using codec::YamlEntry;
using codec::YamlKind;
using codec::YamlNode;

constexpr std::string_view kReservedPrefix = "_provider_";  // OpenShell's own composition.

// One endpoint in the making: the value, and what the checks need beside it.
class EndpointParser {
 public:
  EndpointParser(Reader* reader, const Fields& fields) : reader_(*reader), fields_(fields) {}

  Result<Endpoint> Parse() {
    endpoint_.at = fields_.at();
    TRY(ParsePorts());
    TRY(ParseModes());
    TRY(ParseHost());
    endpoint_.path = TRY(fields_.Text("path"));
    endpoint_.allow_encoded_slash = TRY(fields_.Boolean("allow_encoded_slash", false));
    TRY(CheckPath());
    if (endpoint_.protocol == Protocol::kTcp) TRY(RefuseRequestKeys());
    TRY(ParseRequestRules());
    WarnOfSurprises();
    return std::move(endpoint_);
  }

 private:
  bool Has(std::string_view key) const {
    const YamlNode* value = fields_.Find(key);
    return value != nullptr && value->kind != YamlKind::kNull &&
           !(value->kind == YamlKind::kScalar && value->text.empty());
  }

  Result<uint16_t> ParsePort(const YamlNode& node) const {
    std::optional<uint64_t> port = codec::YamlUnsigned(node);
    if (!port || *port > 65535) {
      return reader_.Invalid(node.at, "a port is a number from 1 to 65535");
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
      return reader_.Invalid(fields_.At("ports"), "'port' and 'ports' are mutually exclusive");
    }
    if (several) {
      for (const YamlNode& item : ports->items) {
        uint16_t number = TRY(ParsePort(item));
        if (number == 0) return reader_.Invalid(item.at, "a port is a number from 1 to 65535");
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
    const std::vector<std::string_view> protocols = {"rest", "tcp",      "websocket", "graphql",
                                                     "sql",  "json-rpc", "mcp"};
    std::optional<size_t> protocol = TRY(fields_.Choice("protocol", protocols, true));
    if (protocol && *protocol >= 2) {
      return reader_.Invalid(
          fields_.At("protocol"),
          "protocol '" + std::string(protocols[*protocol]) + "' is not enforced by this version",
          "write 'protocol: rest' with rules for what may pass");
    }
    if (protocol) endpoint_.protocol = *protocol == 0 ? Protocol::kRest : Protocol::kTcp;
    std::optional<size_t> tls = TRY(fields_.Choice("tls", {"skip", "terminate", "passthrough"}));
    if (tls == 0U) endpoint_.tls = TlsMode::kSkip;
    if (tls && *tls > 0) {
      reader_.Warn(fields_.At("tls"), "this value of 'tls' is deprecated and means the default");
    }
    std::optional<size_t> enforcement = TRY(fields_.Choice("enforcement", {"enforce", "audit"}));
    if (enforcement == 1U) endpoint_.enforcement = Enforcement::kAudit;
    std::optional<size_t> access = TRY(fields_.Choice("access", AccessNames()));
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
      if (endpoint_.allowed_ips.empty()) fault = "is missing, and there are no 'allowed_ips'";
    } else {
      fault = HostFault(endpoint_.host);
    }
    if (fault.empty()) return Ok();
    std::string shown = written.empty() ? "" : " '" + written + "'";
    return reader_.Invalid(fields_.At("host"), "host" + shown + " " + fault);
  }

  Status CheckPath() const {
    const std::string& path = endpoint_.path;
    if (path.empty()) return Ok();
    if (!path.starts_with('/') && path != "**") {
      return reader_.Invalid(fields_.At("path"), "'path' must start with '/' or be '**'",
                             "write 'path: /" + path + "'");
    }
    TRY(CheckGlob(reader_, fields_.At("path"), "path", path, '/'));
    return Ok();
  }

  Status RefuseRequestKeys() const {
    for (std::string_view key :
         {"access", "rules", "deny_rules", "enforcement", "path", "allow_encoded_slash"}) {
      if (Has(key) && !(key == "allow_encoded_slash" && !endpoint_.allow_encoded_slash)) {
        return reader_.Invalid(
            fields_.At(key),
            "'protocol: tcp' has no requests, so '" + std::string(key) + "' cannot apply",
            "remove '" + std::string(key) + "', or write 'protocol: rest'");
      }
    }
    return Ok();
  }

  Status ParseRequestRules() {
    const YamlNode* rules = TRY(fields_.List("rules"));
    const YamlNode* deny_rules = TRY(fields_.List("deny_rules"));
    bool has_access = endpoint_.access != Access::kNone;
    bool rest = endpoint_.protocol == Protocol::kRest;
    if (rules != nullptr && has_access) {
      return reader_.Invalid(rules->at, "'rules' and 'access' are mutually exclusive");
    }
    if (rest && rules == nullptr && !has_access) {
      return reader_.Invalid(fields_.at(), "'protocol: rest' needs 'rules' or 'access'",
                             "add 'access: read-only'");
    }
    for (const YamlNode* list : {rules, deny_rules}) {
      if (list != nullptr && !rest) {
        return reader_.Invalid(list->at, "request rules need a 'protocol'", "add 'protocol: rest'");
      }
    }
    if (rules != nullptr) endpoint_.rules = TRY(ParseRules(&reader_, *rules));
    if (deny_rules != nullptr) endpoint_.deny_rules = TRY(ParseDenyRules(&reader_, *deny_rules));
    if (!has_access) return Ok();
    if (!rest && endpoint_.tls == TlsMode::kSkip) return Ok();  // A tunnel with a label.
    endpoint_.protocol = Protocol::kRest;
    endpoint_.rules = ExpandAccess(endpoint_.protocol, endpoint_.access, fields_.At("access"));
    return Ok();
  }

  void WarnOfSurprises() {
    bool has_access = endpoint_.access != Access::kNone;
    if (endpoint_.tls == TlsMode::kSkip && (has_access || endpoint_.protocol == Protocol::kRest)) {
      reader_.Warn(fields_.At("tls"),
                   "with 'tls: skip' no request over TLS can be judged: only the connection is");
    } else if (has_access && !Has("protocol")) {
      reader_.Warn(fields_.At("access"),
                   "'access' without 'protocol' is only a label to OpenShell; here requests are "
                   "inspected and it is enforced");
    }
    if (!endpoint_.path.empty() && endpoint_.protocol == Protocol::kL4) {
      reader_.Warn(fields_.At("path"), "'path' without 'protocol: rest' has no effect");
    }
    if (endpoint_.enforcement == Enforcement::kAudit) {
      reader_.Warn(fields_.At("enforcement"),
                   "audit: requests that the rules refuse will pass and be recorded");
    }
    for (const std::vector<HttpRule>* rules : {&endpoint_.rules, &endpoint_.deny_rules}) {
      for (const HttpRule& rule : *rules) {
        if (!HasShortStar(rule.path)) continue;
        reader_.Warn(rule.at,
                     "'*' in path '" + rule.path +
                         "' stays within one segment, though OpenShell's documents let it cross "
                         "'/'; write '**' as a whole segment to cross");
      }
    }
  }

  Reader& reader_;
  const Fields& fields_;
  Endpoint endpoint_;
};

Result<std::vector<std::string>> ParseBinaries(Reader* reader, const Fields& policy) {
  std::vector<std::string> binaries;
  const YamlNode* list = TRY(policy.List("binaries"));
  if (list == nullptr || list->items.empty()) {
    reader->Warn(policy.At("binaries"),
                 "no 'binaries': no program may use this policy; write '- path: /**' for any");
    return binaries;
  }
  for (const YamlNode& item : list->items) {
    if (item.kind == YamlKind::kScalar) {
      return reader->Invalid(item.at, "a binary must be a mapping",
                             "write '- path: " + item.text + "'");
    }
    Fields fields = TRY(Fields::Open(reader, item, Section::kBinary));
    std::string path = TRY(fields.Text("path"));
    if (path.empty()) {
      return reader->Invalid(item.at, "a binary needs a 'path'", "write '- path: /usr/bin/git'");
    }
    if (path.find('*') != std::string::npos) {
      TRY(CheckGlob(*reader, fields.At("path"), "path", path, '/'));
    }
    if (!path.starts_with('/') && !path.starts_with("**")) {
      reader->Warn(fields.At("path"), "path '" + path +
                                          "' matches no program: every path starts with '/'; "
                                          "write '/**' for any program");
    }
    binaries.push_back(std::move(path));
  }
  return binaries;
}

Result<NetworkPolicy> ParseNetworkPolicy(Reader* reader, const YamlEntry& entry) {
  if (entry.key.empty()) return reader->Invalid(entry.at, "a network policy needs a key");
  if (entry.key.starts_with(kReservedPrefix)) {
    return reader->Invalid(entry.at, "keys that start with '_provider_' are reserved",
                           "write '" + entry.key.substr(kReservedPrefix.size()) + ":'");
  }
  NetworkPolicy policy;
  policy.key = entry.key;
  policy.at = entry.at;
  Fields fields = TRY(Fields::Open(reader, entry.value, Section::kNetworkPolicy));
  policy.name = TRY(fields.Text("name"));
  if (policy.name.empty()) policy.name = policy.key;
  policy.binaries = TRY(ParseBinaries(reader, fields));
  const YamlNode* endpoints = TRY(fields.List("endpoints"));
  if (endpoints == nullptr) return policy;
  for (const YamlNode& item : endpoints->items) {
    if (item.kind == YamlKind::kScalar) {
      return reader->Invalid(item.at, "an endpoint must be a mapping",
                             "write '- {host: api.example.com, port: 443}'");
    }
    Fields endpoint = TRY(Fields::Open(reader, item, Section::kEndpoint));
    Endpoint parsed = TRY(EndpointParser(reader, endpoint).Parse());
    policy.endpoints.push_back(std::move(parsed));
  }
  return policy;
}

}  // namespace

Result<std::vector<NetworkPolicy>> ParseNetworkPolicies(Reader* reader, const YamlNode& node) {
  std::vector<NetworkPolicy> policies;
  if (node.kind == YamlKind::kNull) return policies;
  if (node.kind != YamlKind::kMapping) {
    return reader->Invalid(node.at, "'network_policies' must be a mapping, not " +
                                        std::string(codec::DescribeKind(node)));
  }
  for (const YamlEntry& entry : node.entries) {
    NetworkPolicy policy = TRY(ParseNetworkPolicy(reader, entry));
    policies.push_back(std::move(policy));
  }
  std::sort(policies.begin(), policies.end(),
            [](const NetworkPolicy& a, const NetworkPolicy& b) { return a.key < b.key; });
  return policies;
}

Status CheckAllowedIps(Reader* reader, codec::Position at,
                       const std::vector<std::string>& entries) {
  constexpr int kWidePrefix = 16;
  for (const std::string& entry : entries) {
    std::string why_not;
    if (!ValidateAllowedIp(entry, &why_not)) {
      return reader->Invalid(at, "allowed address '" + entry + "' " + why_not);
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
