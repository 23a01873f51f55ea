// SPDX-License-Identifier: Apache-2.0
#include "policy/decide.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "codec/glob.h"
#include "codec/http_target.h"
#include "policy/host_pattern.h"
#include "policy/overlap.h"

namespace policy {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

// OpenShell's text, word for word: tools and people look for it.
constexpr std::string_view kSymlinkHint =
    "SYMLINK HINT: the binary path is the kernel-resolved target from /proc/<pid>/exe, not the "
    "symlink. If your policy specifies a symlink (e.g., /usr/bin/python3) but the actual binary is "
    "/usr/bin/python3.11, either: (1) use the canonical path in your policy (run 'readlink -f "
    "/usr/bin/python3' inside the sandbox), or (2) ensure symlink resolution is working (check "
    "sandbox logs for 'Cannot access container filesystem')";

bool CoversHost(const Endpoint& endpoint, std::string_view host, uint16_t port) {
  bool same_port =
      std::find(endpoint.ports.begin(), endpoint.ports.end(), port) != endpoint.ports.end();
  // An endpoint without a host is for every name; its allowed_ips decide where it may lead.
  if (!same_port || host.find('\0') != std::string_view::npos) return false;
  return endpoint.host.empty() || HostMatches(endpoint.host, host);
}

bool MatchesBinary(const std::string& allowed, const std::string& binary) {
  if (binary.empty()) return false;
  if (allowed.find('*') == std::string::npos) return allowed == binary;
  return codec::GlobMatches(allowed, binary, '/');
}

bool AllowsCaller(const NetworkPolicy& policy, const Caller& caller) {
  for (const std::string& allowed : policy.binaries) {
    if (MatchesBinary(allowed, caller.binary)) return true;
    for (const std::string& ancestor : caller.ancestors) {
      if (MatchesBinary(allowed, ancestor)) return true;
    }
  }
  return false;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::string BinaryMiss(const NetworkPolicy& policy, const Caller& caller) {
  return "binary '" + caller.binary + "' not allowed in policy '" + policy.key + "' (ancestors: [" +
         Join(caller.ancestors, " -> ") + "], cmdline: [" + Join(caller.cmdline, ", ") + "]). " +
         std::string(kSymlinkHint);
}

// One endpoint that covers the connection, with the policy it belongs to.
struct Covering {
  const NetworkPolicy* policy = nullptr;
  const Endpoint* endpoint = nullptr;
};

// In the order of the policies' keys: the first is the one that is named.
std::vector<Covering> FindCovering(const Policy& policy, std::string_view host, uint16_t port,
                                   const Caller& caller) {
  std::vector<Covering> covering;
  for (const NetworkPolicy& network : policy.network) {
    std::optional<bool> allows_caller;
    for (const Endpoint& endpoint : network.endpoints) {
      if (!CoversHost(endpoint, host, port)) continue;
      if (!allows_caller) allows_caller = AllowsCaller(network, caller);
      if (*allows_caller) covering.push_back({&network, &endpoint});
    }
  }
  return covering;
}

Decision Denied(std::string reason, std::string policy = "-", codec::Position at = {}) {
  return {false, false, std::move(policy), std::move(reason), at};
}

bool SelectsPath(const Endpoint& endpoint, std::string_view path) {
  if (!codec::PathSelectorMatches(endpoint.path, path)) return false;
  if (endpoint.path.empty() || endpoint.path == "**") return true;
  return codec::GlobMatches(endpoint.path, path, '/');
}

// HEAD is a GET without the body: whoever may see the one may see the other, and whoever may not,
// may not (OpenShell).
bool MethodMatches(const HttpRule& rule, std::string_view method) {
  if (rule.method == "*") return true;
  std::string upper(method);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return rule.method == upper || (upper == "HEAD" && rule.method == "GET");
}

bool PathMatches(const HttpRule& rule, std::string_view path) {
  return rule.path == "**" || codec::GlobMatches(rule.path, path, '/');
}

bool AnyGlobMatches(const QueryMatcher& matcher, std::string_view value) {
  return std::any_of(matcher.any.begin(), matcher.any.end(), [&](const std::string& pattern) {
    return codec::GlobMatches(pattern, value, '.');
  });
}

// To allow, every value of every configured key must match; to deny, one value of each is enough.
// An absent key never matches.
bool QueryMatches(const HttpRule& rule, const Query& query, bool denying) {
  for (const QueryMatcher& matcher : rule.query) {
    int present = 0;
    int matching = 0;
    for (const auto& [key, value] : query) {
      if (key != matcher.key) continue;
      ++present;
      if (AnyGlobMatches(matcher, value)) ++matching;
    }
    if (denying ? matching == 0 : (present == 0 || matching < present)) return false;
  }
  return true;
}

const HttpRule* FindRule(const std::vector<HttpRule>& rules, const HttpRequest& request,
                         const Query& query, bool denying) {
  for (const HttpRule& rule : rules) {
    if (MethodMatches(rule, request.method) && PathMatches(rule, request.path) &&
        QueryMatches(rule, query, denying)) {
      return &rule;
    }
  }
  return nullptr;
}

// A zero byte in a value that a rule looks at is an error in OpenShell's engine, and an error is
// no.
bool HasZero(const Query& query) {
  return std::any_of(query.begin(), query.end(), [](const auto& pair) {
    return pair.first.find('\0') != std::string::npos ||
           pair.second.find('\0') != std::string::npos;
  });
}

// The enforcement of the endpoint with the narrowest path; enforce wins among equals.
bool IsAudited(const std::vector<Covering>& selected) {
  const Endpoint* narrowest = nullptr;
  for (const Covering& covering : selected) {
    const Endpoint* endpoint = covering.endpoint;
    bool narrower =
        narrowest == nullptr || PathSpecificity(*endpoint) > PathSpecificity(*narrowest);
    bool stricter = narrowest != nullptr &&
                    PathSpecificity(*endpoint) == PathSpecificity(*narrowest) &&
                    endpoint->enforcement == Enforcement::kEnforce;
    if (narrower || stricter) narrowest = endpoint;
  }
  return narrowest != nullptr && narrowest->enforcement == Enforcement::kAudit;
}

// Judges against the endpoints whose path selector took the request.
Decision JudgeSelected(const std::vector<Covering>& selected, const HttpRequest& request,
                       const Query& query) {
  std::string subject = std::string(request.method) + " " + std::string(request.path);
  for (const Covering& covering : selected) {
    const HttpRule* rule = FindRule(covering.endpoint->deny_rules, request, query, true);
    if (rule == nullptr) continue;
    return Denied(subject + " blocked by deny rule", covering.policy->name, rule->at);
  }
  for (const Covering& covering : selected) {
    const HttpRule* rule = FindRule(covering.endpoint->rules, request, query, false);
    if (rule == nullptr) continue;
    return {true, false, covering.policy->name, "allowed by policy '" + covering.policy->name + "'",
            rule->at};
  }
  return Denied(subject + " not permitted by policy", selected.front().policy->name,
                selected.front().endpoint->at);
}

}  // namespace

Decision DecideConnection(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller) {
  if (policy.network.empty()) return Denied("network connections not allowed by policy");
  std::string canonical = CanonicalHost(host);
  std::string misses;
  for (const NetworkPolicy& network : policy.network) {
    auto covers = [&](const Endpoint& endpoint) { return CoversHost(endpoint, canonical, port); };
    auto endpoint = std::find_if(network.endpoints.begin(), network.endpoints.end(), covers);
    if (endpoint == network.endpoints.end()) continue;
    if (AllowsCaller(network, caller)) {
      return {true, false, network.name, "allowed by policy '" + network.name + "'", endpoint->at};
    }
    if (!misses.empty()) misses += "; ";
    misses += BinaryMiss(network, caller);
  }
  if (!misses.empty()) return Denied(std::move(misses));
  return Denied("endpoint " + canonical + ":" + std::to_string(port) +
                " is not allowed by any policy");
}

Handling DescribeHandling(const Policy& policy, std::string_view host, uint16_t port,
                          const Caller& caller) {
  Handling handling;
  std::string canonical = CanonicalHost(host);
  for (const Covering& covering : FindCovering(policy, canonical, port, caller)) {
    const Endpoint& endpoint = *covering.endpoint;
    if (handling.policy.empty()) handling.policy = covering.policy->name;
    handling.skip_tls = handling.skip_tls || endpoint.tls == TlsMode::kSkip;
    handling.inspect = handling.inspect || endpoint.protocol == Protocol::kRest;
    handling.allow_encoded_slash = handling.allow_encoded_slash || endpoint.allow_encoded_slash;
    handling.declared_host = handling.declared_host || endpoint.host == canonical;
    for (const std::string& cidr : endpoint.allowed_ips) {
      auto known = std::find(handling.allowed_ips.begin(), handling.allowed_ips.end(), cidr);
      if (known == handling.allowed_ips.end()) handling.allowed_ips.push_back(cidr);
    }
  }
  return handling;
}

Decision DecideRequest(const Policy& policy, std::string_view host, uint16_t port,
                       const Caller& caller, const HttpRequest& request) {
  std::string canonical = CanonicalHost(host);
  std::vector<Covering> covering = FindCovering(policy, canonical, port, caller);
  if (covering.empty()) return DecideConnection(policy, host, port, caller);
  std::vector<Covering> judging;
  std::copy_if(covering.begin(), covering.end(), std::back_inserter(judging),
               [](const Covering& c) { return c.endpoint->protocol == Protocol::kRest; });
  if (judging.empty()) {
    const NetworkPolicy& network = *covering.front().policy;
    return {true, false, network.name, "allowed by policy '" + network.name + "'",
            covering.front().endpoint->at};
  }
  std::string refusal =
      std::string(request.method) + " " + std::string(request.path) + " not permitted by policy";
  Result<Query> query = codec::ParseQuery(request.query);
  if (!query.ok() || HasZero(query.value()) || request.path.find('\0') != std::string_view::npos) {
    return Denied(refusal, judging.front().policy->name, judging.front().endpoint->at);
  }
  std::vector<Covering> selected;
  std::copy_if(judging.begin(), judging.end(), std::back_inserter(selected),
               [&](const Covering& c) { return SelectsPath(*c.endpoint, request.path); });
  if (selected.empty()) {
    return Denied(refusal, judging.front().policy->name, judging.front().endpoint->at);
  }
  Decision decision = JudgeSelected(selected, request, query.value());
  if (!decision.allowed && IsAudited(selected)) {
    decision.allowed = true;
    decision.audited = true;
  }
  return decision;
}

}  // namespace policy
