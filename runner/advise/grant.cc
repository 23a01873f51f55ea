// SPDX-License-Identifier: Apache-2.0
#include "advise/grant.h"

#include <algorithm>

#include "policy/model/protocol.h"

namespace advise {
namespace {

policy::HttpRule EveryCall(std::string_view method, codec::Position at) {
  policy::HttpRule rule;
  rule.method = method;
  rule.at = at;
  return rule;
}

std::vector<policy::HttpRule> EffectiveRules(const policy::Endpoint& endpoint) {
  std::vector<policy::HttpRule> rules = endpoint.rules;
  if (!endpoint.mcp.allow_all_known_methods) return rules;
  bool names_tool = std::any_of(rules.begin(), rules.end(),
                                [](const policy::HttpRule& rule) { return !rule.tool.empty(); });
  if (names_tool) {
    rules.push_back(EveryCall(kAllButTools, endpoint.at));
    return rules;
  }
  return {EveryCall("*", endpoint.at)};
}

bool CallsTool(const policy::HttpRule& rule) {
  return GlobCovers(rule.method, "tools/call", '.') == Cover::kYes;
}

}  // namespace

std::string Grant::Subject() const {
  std::string host = endpoint->host.empty() ? "any host" : endpoint->host;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  std::string subject = host + ":" + std::to_string(port);
  return endpoint->path.empty() ? subject : subject + " at " + endpoint->path;
}

std::vector<Grant> GrantsOf(const policy::Policy& policy) {
  std::vector<Grant> grants;
  for (const policy::NetworkPolicy& network : policy.network) {
    for (const policy::Endpoint& endpoint : network.endpoints) {
      for (uint16_t port : endpoint.ports) {
        grants.push_back({&network, &endpoint, port, EffectiveRules(endpoint)});
      }
    }
  }
  return grants;
}

Cover AllowsConnection(const Grant& grant, const std::string& host, uint16_t port,
                       const std::string& binary) {
  if (grant.port != port) return Cover::kNo;
  Cover host_cover = HostCovers(grant.endpoint->host, host);
  if (host_cover == Cover::kNo) return host_cover;
  Cover any = Cover::kNo;
  for (const std::string& allowed : grant.policy->binaries) {
    any = Either(any, BinaryCovers(allowed, binary));
  }
  return Both(host_cover, any);
}

bool IsJudged(const std::vector<Grant>& grants, const Grant& grant, const std::string& binary) {
  if (policy::JudgesRequests(grant.endpoint->protocol)) return true;
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& other) {
    return policy::JudgesRequests(other.endpoint->protocol) &&
           AllowsConnection(other, grant.endpoint->host, grant.port, binary) == Cover::kYes;
  });
}

Cover AllowsRule(const Grant& wide, const Grant& narrow, const policy::HttpRule& rule) {
  policy::Protocol protocol = narrow.endpoint->protocol;
  if (!policy::JudgesRequests(wide.endpoint->protocol)) return Cover::kNo;
  Cover selector = SelectorCovers(wide.endpoint->path, narrow.endpoint->path);
  // A rule for one path is selected when that path is, whatever its own endpoint selects.
  bool about_path = !rule.path.empty();
  if (about_path) selector = Either(selector, SelectorCovers(wide.endpoint->path, rule.path));
  if (wide.endpoint->protocol != protocol) return Both(selector, Cover::kUnknown);
  Cover any = Cover::kNo;
  for (const policy::HttpRule& allowed : wide.rules) {
    bool all_but_tools = allowed.method == kAllButTools && !CallsTool(rule);
    Cover covers = all_but_tools ? Cover::kYes : RuleCovers(protocol, allowed, rule);
    any = Either(any, covers);
  }
  return Both(selector, any);
}

}  // namespace advise
