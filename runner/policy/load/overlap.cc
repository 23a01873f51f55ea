// SPDX-License-Identifier: Apache-2.0
#include "policy/load/overlap.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "codec/data/yaml.h"
#include "codec/glob/glob.h"
#include "policy/model/endpoint_keys.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace policy {
namespace {

// 2000 endpoints are two million pairs: still well under a second.
constexpr size_t kEndpointsMax = 2000;

bool SharePort(const Endpoint& a, const Endpoint& b) {
  return std::any_of(a.ports.begin(), a.ports.end(), [&](uint16_t port) {
    return std::find(b.ports.begin(), b.ports.end(), port) != b.ports.end();
  });
}

bool IsEveryPath(std::string_view path) { return path.empty() || path == "**" || path == "/**"; }

bool Below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

// May one path match both selectors? True in doubt.
bool PathsOverlap(std::string_view first, std::string_view second) {
  constexpr std::string_view kPattern = "*?[{\\";
  if (IsEveryPath(first) || IsEveryPath(second)) return true;
  if (first.find_first_of(kPattern) == std::string_view::npos) {
    return codec::PathSelectorMatches(second, first);
  }
  if (second.find_first_of(kPattern) == std::string_view::npos) {
    return codec::PathSelectorMatches(first, second);
  }
  if (!first.ends_with("/**") || !second.ends_with("/**")) return true;
  std::string_view a = first.substr(0, first.size() - 3);
  std::string_view b = second.substr(0, second.size() - 3);
  if (a.find_first_of(kPattern) != std::string_view::npos) return true;
  if (b.find_first_of(kPattern) != std::string_view::npos) return true;
  return Below(a, b) || Below(b, a);
}

bool SameAllowedIps(const Endpoint& a, const Endpoint& b) {
  std::vector<std::string> first = a.allowed_ips;
  std::vector<std::string> second = b.allowed_ips;
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  return first == second;
}

// Does the endpoint say how requests are handled? A plain one only opens the way (OpenShell).
bool HandlesRequests(const Endpoint& endpoint) {
  return JudgesRequests(endpoint.protocol) || !endpoint.allowed_ips.empty() ||
         endpoint.tls == TlsMode::kSkip || !endpoint.credential_provider.empty();
}

// Returns what one parser of requests cannot do in two ways, or an empty text.
std::string_view ProtocolDisagreement(const Endpoint& a, const Endpoint& b) {
  bool implied = a.protocol_implied || b.protocol_implied;  // No request keys, to OpenShell.
  if (a.protocol != b.protocol) return implied ? "" : "protocol";
  switch (a.protocol) {
    case Protocol::kWebSocket:
      if (CarriesGraphql(a) != CarriesGraphql(b)) return "whether messages are GraphQL";
      if (CarriesGraphql(a) && a.body_bytes_max != b.body_bytes_max) {
        return "graphql_max_body_bytes";
      }
      return "";
    case Protocol::kGraphql:
      return a.body_bytes_max != b.body_bytes_max ? "graphql_max_body_bytes" : "";
    case Protocol::kMcp:
      if (a.mcp.strict_tool_names != b.mcp.strict_tool_names) return "mcp.strict_tool_names";
      [[fallthrough]];
    case Protocol::kJsonRpc:
      return a.body_bytes_max != b.body_bytes_max ? "max_body_bytes" : "";
    default:
      return "";
  }
}

// Returns what two endpoints for the same requests disagree on, or an empty text.
std::string_view RequestDisagreement(const Endpoint& a, const Endpoint& b) {
  std::string_view field = ProtocolDisagreement(a, b);
  if (!field.empty()) return field;
  if (a.enforcement != b.enforcement) return "enforcement";
  for (const EndpointKey& key : kEndpointKeys) {
    if (a.*key.member != b.*key.member) return key.name;
  }
  if (a.signing != b.signing) return "credential_signing";
  if (a.signing_service != b.signing_service) return "signing_service";
  if (a.signing_region != b.signing_region) return "signing_region";
  if (a.credential_provider != b.credential_provider) return "credential_binding";
  return "";
}

// Returns what the two disagree on, or an empty text.
std::string_view Disagreement(const Endpoint& a, const Endpoint& b) {
  if ((a.protocol == Protocol::kTcp) != (b.protocol == Protocol::kTcp)) return "protocol: tcp";
  if (a.tls != b.tls) return "tls";
  if (!SameAllowedIps(a, b)) return "allowed_ips";
  if (!HandlesRequests(a) || !HandlesRequests(b)) return "";
  if (PathSpecificity(a) != PathSpecificity(b) || !PathsOverlap(a.path, b.path)) return "";
  return RequestDisagreement(a, b);
}

std::string Describe(const Endpoint& endpoint) {
  return "'" + (endpoint.host.empty() ? "any host" : endpoint.host) + "'";
}

bool IsRpc(const Endpoint& endpoint) {
  return endpoint.protocol == Protocol::kJsonRpc || endpoint.protocol == Protocol::kMcp;
}

// May one program match both? True in doubt.
bool SharePrograms(const NetworkPolicy& a, const NetworkPolicy& b) {
  auto is_pattern = [](const std::string& binary) { return binary.find('*') != std::string::npos; };
  return std::any_of(a.binaries.begin(), a.binaries.end(), [&](const std::string& binary) {
    return std::any_of(b.binaries.begin(), b.binaries.end(), [&](const std::string& other) {
      return binary == other || is_pattern(binary) || is_pattern(other);
    });
  });
}

// Returns whether a rule of `endpoint` lets a POST pass at a path that `path` selects.
bool AllowsPost(const Endpoint& endpoint, std::string_view path) {
  return std::any_of(endpoint.rules.begin(), endpoint.rules.end(), [&](const HttpRule& rule) {
    bool post = rule.method == "*" || ascii::LowerCase(rule.method) == "post";
    return post && PathsOverlap(rule.path, path);
  });
}

bool Bypasses(const Endpoint& wide, const Endpoint& calls) {
  return !IsRpc(wide) && JudgesRequests(wide.protocol) && SharePort(wide, calls) &&
         PathSpecificity(wide) < PathSpecificity(calls) && PathsOverlap(wide.path, calls.path) &&
         AllowsPost(wide, calls.path) && HostsOverlap(wide.host, calls.host);
}

Error Ambiguous(const std::string& file, const Endpoint& a, const Endpoint& b,
                std::string_view field) {
  bool b_later = b.at.line > a.at.line || (b.at.line == a.at.line && b.at.column >= a.at.column);
  const Endpoint& later = b_later ? b : a;
  const Endpoint& earlier = b_later ? a : b;
  std::string other =
      earlier.at.line == 0 ? "a default" : "line " + std::to_string(earlier.at.line);
  return codec::InvalidAt(
      file, later.at,
      "network endpoint ambiguity validation failed: " + Describe(later) + " and " +
          Describe(earlier) + " (" + other + ") share a port and differ in " + std::string(field),
      earlier.at.line == 0 ? "write 'defaults: none' and list what you need"
                           : "make both agree, or use a narrower 'path' in one");
}

}  // namespace

size_t PathSpecificity(const Endpoint& endpoint) {
  if (IsEveryPath(endpoint.path)) return 0;
  return endpoint.path.size() -
         static_cast<size_t>(std::count(endpoint.path.begin(), endpoint.path.end(), '*'));
}

Status CheckOverlaps(const std::string& file, const Policy& policy) {
  std::vector<const Endpoint*> endpoints;
  for (const NetworkPolicy& network : policy.network) {
    for (const Endpoint& endpoint : network.endpoints) endpoints.push_back(&endpoint);
  }
  if (endpoints.size() > kEndpointsMax) {
    return codec::InvalidAt(file, {}, "more than 2000 endpoints",
                            "use host patterns, or lists of ports");
  }
  for (size_t i = 0; i < endpoints.size(); ++i) {
    for (size_t j = i + 1; j < endpoints.size(); ++j) {
      const Endpoint& a = *endpoints[i];
      const Endpoint& b = *endpoints[j];
      if (!SharePort(a, b)) continue;
      std::string_view field = Disagreement(a, b);
      if (field.empty() || !HostsOverlap(a.host, b.host)) continue;
      return Ambiguous(file, a, b, field);
    }
  }
  return Ok();
}

std::vector<Warning> FindBypassedCalls(const Policy& policy) {
  std::vector<Warning> warnings;
  for (const NetworkPolicy& network : policy.network) {
    for (const Endpoint& calls : network.endpoints) {
      if (!IsRpc(calls)) continue;
      for (const NetworkPolicy& other : policy.network) {
        if (&other != &network && !SharePrograms(network, other)) continue;
        auto wide =
            std::find_if(other.endpoints.begin(), other.endpoints.end(),
                         [&](const Endpoint& endpoint) { return Bypasses(endpoint, calls); });
        if (wide == other.endpoints.end()) continue;
        warnings.push_back(
            {calls.at,
             "calls that these rules do not allow pass all the same: the wider endpoint at "
             "line " +
                 std::to_string(wide->at.line) +
                 " allows POST here; narrow its 'path' or its rules"});
        break;
      }
    }
  }
  return warnings;
}

}  // namespace policy
