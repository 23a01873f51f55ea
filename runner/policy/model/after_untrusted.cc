// SPDX-License-Identifier: Apache-2.0
#include "policy/model/after_untrusted.h"

#include <algorithm>
#include <utility>

#include "base/join.h"
#include "policy/model/access.h"
#include "policy/model/host_pattern.h"
#include "policy/model/policy.h"

namespace policy {
namespace {

bool IsAt(const HostPort& entry, uint16_t port) { return entry.port == 0 || entry.port == port; }

bool MayCover(const Endpoint& endpoint, const HostPort& entry, uint16_t port) {
  // An endpoint without a host is for every name.
  return IsAt(entry, port) && (endpoint.host.empty() || HostsOverlap(endpoint.host, entry.host));
}

std::vector<std::string> RenderDoors(const Doors& doors) {
  std::vector<std::string> entries = doors.words;
  for (const HostPort& one : doors.hosts) {
    std::string entry = BracketedHost(one.host);
    if (one.port != 0) entry += ":" + std::to_string(one.port);
    // YAML's alias, and its list.
    const bool quoted = entry.front() == '*' || entry.front() == '[';
    entries.push_back(quoted ? "\"" + entry + "\"" : entry);
  }
  return entries;
}

// Narrows the endpoints of one policy.
class Narrower {
 public:
  Narrower(const AfterUntrusted& rules, const std::vector<HostPort>& models,
           const std::vector<HostPort>& bound)
      : closes_(rules.closes), bound_(bound), stays_(rules.stays.hosts) {
    stays_.insert(stays_.end(), models.begin(), models.end());
  }

  std::vector<Endpoint> Narrow(const std::vector<Endpoint>& endpoints) const {
    std::vector<Endpoint> kept;
    for (const Endpoint& endpoint : endpoints) {
      for (uint16_t port : endpoint.ports) {
        Endpoint one = endpoint;
        one.ports = {port};
        Add(std::move(one), port, &kept);
      }
    }
    return kept;
  }

 private:
  void Add(Endpoint endpoint, uint16_t port, std::vector<Endpoint>* kept) const {
    const bool named = !endpoint.host.empty() && !IsHostPattern(endpoint.host);
    const bool whole = std::ranges::any_of(stays_, [&](const HostPort& entry) {
      return IsAt(entry, port) &&
             (entry.host == endpoint.host || (named && HostMatches(entry.host, endpoint.host)));
    });
    if (whole) return kept->push_back(std::move(endpoint));
    for (const HostPort& entry : stays_) {
      const bool part = !named && IsAt(entry, port) &&
                        (endpoint.host.empty() ||
                         (!IsHostPattern(entry.host) && HostMatches(endpoint.host, entry.host)));
      if (!part) continue;
      Endpoint& staying = kept->emplace_back(endpoint);
      staying.host = entry.host;
      staying.of_pattern = true;
    }
    if (Closes(endpoint, port)) return;
    if (closes_.Has(kClosesWrites) && !KeepReading(&endpoint)) return;
    kept->push_back(std::move(endpoint));
  }

  bool Closes(const Endpoint& endpoint, uint16_t port) const {
    const auto covers = [&](const HostPort& entry) { return MayCover(endpoint, entry, port); };
    return closes_.Has(kClosesAll) || std::ranges::any_of(closes_.hosts, covers) ||
           (closes_.Has(kClosesCredentials) && std::ranges::any_of(bound_, covers));
  }

  const Doors& closes_;
  const std::vector<HostPort>& bound_;
  std::vector<HostPort> stays_;
};

bool IsClosed(const AfterUntrusted& rules, const HostedAllowance& tool) {
  if (rules.stays.Has(tool.kind)) return false;
  return rules.closes.Has(kClosesAll) || rules.closes.Has(kClosesHostedTools) ||
         rules.closes.Has(tool.kind);
}

}  // namespace

bool Doors::Has(std::string_view word) const {
  return std::ranges::find(words, word) != words.end();
}

bool Covers(const std::vector<HostPort>& hosts, std::string_view host, uint16_t port) {
  return std::ranges::any_of(hosts, [&](const HostPort& entry) {
    return IsAt(entry, port) && HostMatches(entry.host, host);
  });
}

std::string RenderAfterUntrusted(const AfterUntrusted& value) {
  if (!value.used()) return "none";
  std::string text = "{closes: [" + Join(RenderDoors(value.closes)) + "]";
  const std::vector<std::string> stays = RenderDoors(value.stays);
  if (!stays.empty()) text += ", stays: [" + Join(stays) + "]";
  const std::vector<std::string> trusts = RenderDoors({{}, value.trusts});
  if (!trusts.empty()) text += ", trusts: [" + Join(trusts) + "]";
  return text + "}";
}

Policy Narrow(Policy policy, const std::vector<HostPort>& models,
              const std::vector<HostPort>& bound, std::string by) {
  const AfterUntrusted& rules = policy.after_untrusted;
  if (!rules.used()) return policy;
  const Narrower narrower(rules, models, bound);
  for (NetworkPolicy& network : policy.network) {
    network.endpoints = narrower.Narrow(network.endpoints);
  }
  std::erase_if(policy.hosted_tools,
                [&](const HostedAllowance& tool) { return IsClosed(rules, tool); });
  policy.narrowed_by = std::move(by);
  return policy;
}

}  // namespace policy
