// SPDX-License-Identifier: Apache-2.0
#include "policy/load/short_form.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "policy/load/endpoint_parse.h"
#include "policy/model/access.h"
#include "policy/model/destination.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

using codec::Position;
using codec::YamlKind;
using codec::YamlNode;

constexpr size_t kSegmentsMax = 6;
constexpr std::string_view kGrammar =
    "write 'host:port:access', like 'api.example.com:443:read-only'";

// The endpoints that the Python agentic-ci opens, without the package indexes: those are opened by
// ecosystem.
constexpr std::array<std::string_view, 8> kAgenticCiEndpoints = {
    "github.com:443:full",
    "*.github.com:443:full",
    "gitlab.com:443:full",
    "*.gitlab.com:443:full",
    "aiplatform.googleapis.com:443:read-write",
    "*.aiplatform.googleapis.com:443:read-write",
    "oauth2.googleapis.com:443:read-write",
    "api.anthropic.com:443:read-write",
};

// The paths where distributions put git, and the programs that it starts for https.
constexpr std::array<std::string_view, 5> kGitBinaries = {
    "/usr/bin/git", "/usr/lib/git-core/**", "/usr/libexec/git-core/**", "/usr/local/bin/git",
    "/usr/local/libexec/git-core/**"};

struct Segment {
  std::string text;
  int offset = 0;  // The offset in the endpoint text.
};

// Splits at colons, those of a bracketed address and of the last segment not counted.
std::vector<Segment> SplitSegments(std::string_view text) {
  std::vector<Segment> segments;
  size_t start = 0;
  size_t search = 0;
  if (text.starts_with('[')) search = std::min(text.find(']'), text.size());
  while (segments.size() + 1 < kSegmentsMax) {
    size_t colon = text.find(':', search);
    if (colon == std::string_view::npos) break;
    segments.push_back(
        {std::string(ascii::Trimmed(text.substr(start, colon - start))), static_cast<int>(start)});
    start = colon + 1;
    search = start;
  }
  segments.push_back({std::string(ascii::Trimmed(text.substr(start))), static_cast<int>(start)});
  return segments;
}

// An IPv6 address without brackets: where does it end and the port begin?
bool IsBareIpv6(std::string_view text) {
  size_t access = text.find_first_not_of("0123456789abcdefABCDEF:.");
  std::string_view address = text.substr(0, access);
  while (address.ends_with(':')) address.remove_suffix(1);
  if (ParseAddress(address) && address.find(':') != std::string_view::npos) return true;
  size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view front = address.substr(0, colon);
  return front.find(':') != std::string_view::npos && ParseAddress(front).has_value();
}

class EndpointTextParser {
 public:
  EndpointTextParser(Reader* reader, Position at, std::string_view text)
      : reader_(*reader), at_(at), text_(text), segments_(SplitSegments(text)) {}

  Result<Endpoint> Parse() {
    endpoint_.at = at_;
    if (!text_.starts_with('[') && IsBareIpv6(text_)) {
      return reader_.Invalid(at_, "'" + std::string(text_) + "' is ambiguous",
                             "put the address in brackets: [2001:db8::1]:443:read-only");
    }
    if (text_.find("://") != std::string_view::npos) {
      return reader_.Invalid(at_, "'" + std::string(text_) + "' is a URL, not a host and a port",
                             kGrammar);
    }
    if (segments_.size() < 2) {
      return reader_.Invalid(at_, "'" + std::string(text_) + "' has no port", kGrammar);
    }
    TRY(ParseHost());
    TRY(ParsePort());
    // Between colons nothing has a meaning; what was to stand at the end is missing.
    if (segments_.size() > 3 && segments_.back().text.empty()) {
      return reader_.Invalid(At(segments_.size() - 1), "nothing follows the last ':'", kGrammar);
    }
    TRY(ParseAccess());
    TRY(ParseProtocol());
    TRY(ParseEnforcement());
    TRY(ParseOptions());
    TRY(Finish());
    return std::move(endpoint_);
  }

 private:
  // Columns count characters of the file; the text has no escapes, so an offset is a column.
  Position At(size_t segment) const { return {at_.line, at_.column + segments_[segment].offset}; }
  size_t OffsetOf(size_t segment) const { return static_cast<size_t>(segments_[segment].offset); }
  std::string Get(size_t segment) const {
    return segment < segments_.size() ? segments_[segment].text : "";
  }
  Error Unknown(size_t segment, std::string_view what,
                const std::vector<std::string_view>& values) const {
    return reader_.Invalid(At(segment), "'" + Get(segment) + "' is not " + std::string(what),
                           codec::OneOf(values));
  }

  Status ParseHost() {
    endpoint_.host = CanonicalHost(Get(0));
    std::string fault = endpoint_.host.empty() ? "is missing" : HostFault(endpoint_.host);
    if (fault.empty()) return Ok();
    return reader_.Invalid(At(0), "host '" + Get(0) + "' " + fault, kGrammar);
  }

  Status ParsePort() {
    std::string digits = Get(1);
    unsigned port = 0;
    bool number = !digits.empty() && digits.size() <= 5 && digits.front() != '0';
    for (char c : digits) {
      number = number && c >= '0' && c <= '9';
      port = port * 10 + static_cast<unsigned>(c - '0');
    }
    if (!number || port == 0 || port > 65535) {
      return reader_.Invalid(At(1), "'" + digits + "' is not a port from 1 to 65535", kGrammar);
    }
    endpoint_.ports = {static_cast<uint16_t>(port)};
    return Ok();
  }

  Status ParseAccess() {
    std::string access = Get(2);
    if (access.empty()) {
      if (segments_.size() != 3) return Ok();
      return reader_.Invalid(At(2), "the access preset is empty", codec::OneOf(AccessNames()));
    }
    for (Access value : {Access::kReadOnly, Access::kReadWrite, Access::kFull}) {
      if (AccessName(value) == access) endpoint_.access = value;
    }
    if (endpoint_.access == Access::kNone) return Unknown(2, "an access preset", AccessNames());
    return Ok();
  }

  Status ParseProtocol() {
    std::string protocol = ascii::LowerCase(Get(3));
    if (protocol.empty()) return Ok();
    for (Protocol value : {Protocol::kRest, Protocol::kWebSocket, Protocol::kSql, Protocol::kTcp}) {
      if (ProtocolName(value) == protocol) endpoint_.protocol = value;
    }
    if (endpoint_.protocol == Protocol::kL4) {
      return Unknown(3, "a protocol", {"rest", "websocket", "sql", "tcp"});
    }
    if (JudgesRequests(endpoint_.protocol) && endpoint_.access == Access::kNone) {
      return reader_.Invalid(At(3), "protocol '" + protocol + "' needs an access preset",
                             codec::OneOf(AccessNames()));
    }
    if (endpoint_.protocol == Protocol::kTcp) {
      if (endpoint_.access != Access::kNone) {
        return reader_.Invalid(At(2),
                               "protocol 'tcp' has no requests, so it takes no access preset",
                               "write 'host:port::tcp'");
      }
      std::string fault = TcpHostFault(Get(0));
      if (!fault.empty()) {
        return reader_.Invalid(At(0), "host '" + Get(0) + "' " + fault, "write 'NAME:port::tcp'");
      }
    }
    return Ok();
  }

  Status ParseEnforcement() {
    std::string enforcement = Get(4);
    if (endpoint_.protocol == Protocol::kSql && enforcement != "audit") {
      return reader_.Invalid(At(enforcement.empty() ? 3 : 4),
                             "sql cannot be enforced, only recorded",
                             "write 'host:port:access:sql:audit'");
    }
    if (enforcement.empty()) return Ok();
    if (enforcement != "enforce" && enforcement != "audit") {
      return Unknown(4, "an enforcement mode", {"enforce", "audit"});
    }
    if (!JudgesRequests(endpoint_.protocol)) {
      return reader_.Invalid(At(4), "an enforcement mode needs the protocol 'rest' or 'websocket'",
                             "write 'host:port:access:rest:" + enforcement + "'");
    }
    if (enforcement == "audit") {
      endpoint_.enforcement = Enforcement::kAudit;
      reader_.Warn(At(4), "audit: requests that the access preset denies are allowed and recorded");
    }
    return Ok();
  }

  Status ParseOptions() {
    if (segments_.size() < kSegmentsMax) return Ok();
    std::string_view rest = text_.substr(OffsetOf(5));
    Position at = At(5);
    for (bool more = true; more;) {
      more = rest.find(',') != std::string_view::npos;
      size_t comma = std::min(rest.find(','), rest.size());
      TRY(ParseOption(std::string(ascii::Trimmed(rest.substr(0, comma))), at));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      at.column += static_cast<int>(comma) + 1;
    }
    return CheckAllowedIps(&reader_, At(5), endpoint_.allowed_ips);
  }

  Status ParseOption(const std::string& option, Position at) {
    constexpr std::string_view kAllowedIp = "allowed-ip=";
    if (option.starts_with(kAllowedIp)) {
      endpoint_.allowed_ips.push_back(option.substr(kAllowedIp.size()));
    } else if (option == "allow-uninspected-credentials") {
      endpoint_.allow_uninspected_credentials = true;
    } else if (option == "websocket-credential-rewrite") {
      endpoint_.websocket_credential_rewrite = true;
      if (endpoint_.protocol != Protocol::kWebSocket) return Misplaced(option, at, "websocket");
    } else if (option == "request-body-credential-rewrite") {
      endpoint_.request_body_credential_rewrite = true;
      if (endpoint_.protocol != Protocol::kRest) return Misplaced(option, at, "rest");
    } else {
      return reader_.Invalid(
          at, "'" + option + "' is not an option",
          codec::OneOf({"allowed-ip=CIDR", "allow-uninspected-credentials",
                        "websocket-credential-rewrite", "request-body-credential-rewrite"}));
    }
    return Ok();
  }

  Error Misplaced(const std::string& option, Position at, const std::string& protocol) const {
    return reader_.Invalid(at, "option '" + option + "' needs the protocol '" + protocol + "'",
                           "write 'host:port:read-write:" + protocol + ":enforce:" + option + "'");
  }

  Status Finish() {
    std::string warning = HostWarning(endpoint_.host);
    if (!warning.empty()) reader_.Warn(at_, warning);
    if (endpoint_.access == Access::kNone) return Ok();
    if (endpoint_.protocol == Protocol::kL4) {
      endpoint_.protocol = Protocol::kRest;
      endpoint_.protocol_implied = true;
    }
    endpoint_.rules = ExpandAccess(endpoint_.protocol, endpoint_.access, endpoint_.at);
    return Ok();
  }

  Reader& reader_;
  Position at_;
  std::string_view text_;
  std::vector<Segment> segments_;
  Endpoint endpoint_;
};

// A built-in endpoint, which is always valid and not part of a file.
Endpoint BuiltIn(std::string_view text) {
  Reader reader;
  Result<Endpoint> endpoint = ParseEndpointText(&reader, {}, text);
  ENSURE(endpoint.ok());
  Endpoint built = std::move(endpoint).value();
  built.at = {};
  for (HttpRule& rule : built.rules) rule.at = {};
  return built;
}

NetworkPolicy Named(std::string_view key, std::vector<std::string> binaries) {
  NetworkPolicy policy;
  policy.key = std::string(key);
  policy.name = policy.key;
  policy.binaries = std::move(binaries);
  return policy;
}

// The forge for git: fetching and cloning pass, pushing does not.
NetworkPolicy ForgePolicy(const std::string& forge_host) {
  NetworkPolicy policy = Named("default-forge", {kGitBinaries.begin(), kGitBinaries.end()});
  Endpoint endpoint;
  endpoint.host = CanonicalHost(forge_host);
  endpoint.ports = {443};
  endpoint.protocol = Protocol::kRest;
  endpoint.rules = {RequestRule("GET", "/**", {}), RequestRule("HEAD", "/**", {}),
                    RequestRule("POST", "/**/git-upload-pack", {})};
  policy.endpoints.push_back(std::move(endpoint));
  return policy;
}

// The agent's model, without the hosts that `open` has already.
NetworkPolicy ModelPolicy(const ParseContext& context, const std::vector<Endpoint>& open) {
  NetworkPolicy policy = Named("default-model", {std::string(kAgentPrograms)});
  if (!context.model_hosts) return policy;
  for (const ModelHost& model : context.model_hosts(context.agent_name)) {
    bool is_open = std::any_of(open.begin(), open.end(), [&](const Endpoint& endpoint) {
      return HostMatches(endpoint.host, model.host) && endpoint.ports.front() == model.port;
    });
    if (is_open) continue;
    Endpoint endpoint = BuiltIn("model.invalid:443:read-write");
    endpoint.host = model.host;
    endpoint.ports = {model.port};
    endpoint.path = model.path;
    policy.endpoints.push_back(std::move(endpoint));
  }
  return policy;
}

Result<Defaults> ParseDefaults(const Fields& fields) {
  std::optional<size_t> choice = TRY(fields.Choice("defaults", {"agentic-ci", "minimal", "none"}));
  if (choice) return static_cast<Defaults>(*choice);
  if (fields.Find("endpoints") == nullptr) return Defaults::kMinimal;  // Other keys alone.
  // Files written before the key keep their meaning, but an empty list is not one that leaves out
  // what is open anyway.
  const YamlNode* list = TRY(fields.List("endpoints"));
  bool nothing = list != nullptr && list->items.empty();
  return nothing ? Defaults::kNone : Defaults::kAgenticCi;
}

// The endpoints of the file, each text once, without those that a default says already.
Result<std::vector<Endpoint>> ParseEndpoints(Reader* reader, const Fields& fields,
                                             Defaults defaults) {
  std::vector<Endpoint> endpoints;
  const YamlNode* list = TRY(fields.List("endpoints"));
  if (list == nullptr) return endpoints;
  std::set<std::string, std::less<>> seen;
  if (defaults == Defaults::kAgenticCi) {
    seen.insert(kAgenticCiEndpoints.begin(), kAgenticCiEndpoints.end());
  }
  for (const YamlNode& item : list->items) {
    std::optional<std::string> text = codec::ScalarText(item);
    if (!text || text->empty()) {
      reader->KeepError(
          reader->Invalid(item.at,
                          "an endpoint must be text, not " +
                              std::string(text ? "nothing" : codec::DescribeKind(item)),
                          kGrammar));
      continue;
    }
    if (!seen.insert(*text).second) continue;
    size_t blanks = item.text.find_first_not_of(" \t\r\n");
    Position at = item.at;
    at.column += static_cast<int>(blanks) + (item.quoted ? 1 : 0);
    if (auto endpoint = reader->Keep(ParseEndpointText(reader, at, *text))) {
      endpoints.push_back(*std::move(endpoint));
    }
  }
  return endpoints;
}

}  // namespace

std::vector<NetworkPolicy> DefaultNetworkPolicies(Defaults defaults, const ParseContext& context) {
  std::vector<NetworkPolicy> policies;
  if (defaults == Defaults::kAgenticCi) {
    NetworkPolicy policy = Named("defaults", {std::string(kAgentPrograms)});
    for (std::string_view text : kAgenticCiEndpoints) policy.endpoints.push_back(BuiltIn(text));
    policies.push_back(std::move(policy));
  }
  if (defaults == Defaults::kMinimal) policies.push_back(ForgePolicy(context.forge_host));
  if (defaults == Defaults::kNone) return policies;
  NetworkPolicy model = ModelPolicy(context, policies.front().endpoints);
  if (!model.endpoints.empty()) policies.push_back(std::move(model));
  return policies;
}

Result<Endpoint> ParseEndpointText(Reader* reader, Position at, std::string_view text) {
  return EndpointTextParser(reader, at, text).Parse();
}

Result<std::vector<NetworkPolicy>> ParseShortForm(Reader* reader, const YamlNode& root,
                                                  const ParseContext& context) {
  NetworkPolicy policy = Named("endpoints", {std::string(kAgentPrograms)});
  Fields fields = TRY(Fields::Open(reader, root, Section::kShortForm));
  Defaults defaults = reader->Keep(ParseDefaults(fields)).value_or(Defaults::kNone);
  policy.at = fields.At("endpoints");
  policy.endpoints = TRY(ParseEndpoints(reader, fields, defaults));
  if (defaults == Defaults::kNone && policy.endpoints.empty()) {
    reader->Warn(policy.at, "no endpoints and no defaults: every connection is refused");
  }
  std::vector<NetworkPolicy> policies = DefaultNetworkPolicies(defaults, context);
  if (!policy.endpoints.empty()) policies.push_back(std::move(policy));
  std::sort(policies.begin(), policies.end(),
            [](const NetworkPolicy& a, const NetworkPolicy& b) { return a.key < b.key; });
  return policies;
}

}  // namespace policy
