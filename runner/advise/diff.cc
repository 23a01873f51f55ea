// SPDX-License-Identifier: Apache-2.0
#include "advise/diff.h"

#include <algorithm>
#include <tuple>

#include "advise/diff_system.h"
#include "advise/grant.h"
#include "advise/rule_text.h"
#include "policy/load/live_update.h"
#include "policy/model/endpoint_keys.h"
#include "policy/model/host_pattern.h"
#include "policy/model/protocol.h"

namespace advise {
namespace {

using Texts = std::vector<std::string>;

std::string SigningText(const policy::Endpoint& endpoint) {
  constexpr std::string_view kNames[] = {"", "sigv4", "sigv4:body", "sigv4:no_body"};
  return "signed for " + endpoint.signing_service + " with " +
         std::string(kNames[static_cast<size_t>(endpoint.signing)]) +
         (endpoint.signing_region.empty() ? "" : " in " + endpoint.signing_region);
}

// Returns the facts about an endpoint beside its rules, each as a text that two endpoints can
// share.
Texts TraitsOf(const policy::Endpoint& endpoint) {
  Texts traits;
  auto add = [&](bool holds, std::string text) {
    if (holds) traits.push_back(std::move(text));
  };
  add(endpoint.protocol != policy::Protocol::kL4,
      "judged as " + std::string(policy::ProtocolName(endpoint.protocol)));
  for (const policy::EndpointKey& key : policy::kEndpointKeys) {
    add(endpoint.*key.member, std::string(key.name));
  }
  add(endpoint.signing != policy::Signing::kNone, SigningText(endpoint));
  add(!endpoint.credential_provider.empty(),
      "credentials of provider " + endpoint.credential_provider);
  add(endpoint.body_bytes_max != policy::Endpoint().body_bytes_max,
      "bodies up to " + std::to_string(endpoint.body_bytes_max) + " bytes");
  add(!endpoint.mcp.strict_tool_names, "strict_tool_names: false");
  add(!endpoint.allowed_ips.empty(), "limited to allowed_ips");
  return traits;
}

// Returns what an endpoint opens beyond its rules.
Texts LooseEndsOf(const policy::Endpoint& endpoint) {
  Texts ends;
  if (endpoint.tls == policy::TlsMode::kSkip) ends.emplace_back("uninspected TLS");
  if (endpoint.enforcement == policy::Enforcement::kAudit &&
      policy::JudgesRequests(endpoint.protocol)) {
    ends.emplace_back("requests that the rules refuse (audit)");
  }
  if (endpoint.allow_registered_queries) {
    for (const policy::PersistedQuery& query : endpoint.persisted_queries) {
      ends.push_back("the registered query " + query.id);
    }
  }
  return ends;
}

bool Contains(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Returns whether rules of the endpoint let every request pass.
bool AllowsEverything(const Grant& grant) {
  if (!grant.endpoint->deny_rules.empty()) return false;
  return std::any_of(grant.rules.begin(), grant.rules.end(), [](const policy::HttpRule& rule) {
    return rule.method == "*" && rule.path == "**" && rule.query.empty();
  });
}

// One direction: what `to` allows and `from` does not.
class OneWay {
 public:
  // `after`: `to` is the new policy. Differences go to `only` and to `changes`.
  OneWay(const policy::Policy& from, const policy::Policy& to,
         const std::vector<BoundSecret>& secrets, bool after, std::vector<Difference>* only,
         std::vector<Difference>* changes)
      : from_(GrantsOf(from)),
        to_(GrantsOf(to)),
        secrets_(secrets),
        after_(after),
        only_(*only),
        changes_(*changes) {}

  void Compare() {
    for (const Grant& grant : to_) {
      for (const std::string& binary : grant.policy->binaries) CompareGrant(grant, binary);
    }
    for (const Grant& grant : from_) CompareDenials(grant);
  }

 private:
  void Add(std::vector<Difference>* list, const Grant& grant, std::string what,
           const std::string& binary, codec::Position at) {
    std::string subject = grant.Subject();
    auto same = [&](const Difference& other) {
      return other.subject == subject && other.what == what;
    };
    auto known = std::find_if(list->begin(), list->end(), same);
    if (known != list->end()) {
      if (!Contains(known->binaries, binary)) known->binaries.push_back(binary);
      return;
    }
    Difference difference{subject, std::move(what), {binary}, at, {}};
    for (const BoundSecret& secret : secrets_) {
      bool about =
          grant.endpoint->host.empty() || policy::HostMatches(grant.endpoint->host, secret.host);
      if (about && !Contains(difference.secrets, secret.name)) {
        difference.secrets.push_back(secret.name);
      }
    }
    list->push_back(std::move(difference));
  }

  void Opened(const Grant& grant, std::string what, const std::string& binary, codec::Position at) {
    Add(&only_, grant, std::move(what), binary, at);
  }

  void Changed(const Grant& grant, const std::string& what, const std::string& binary,
               codec::Position at) {
    Add(&changes_, grant, (after_ ? "now " : "no longer ") + what, binary, at);
  }

  void CompareGrant(const Grant& grant, const std::string& binary) {
    std::vector<const Grant*> before;
    Cover covered = Cover::kNo;
    std::string was;
    for (const Grant& other : from_) {
      Cover covers = AllowsConnection(other, grant.endpoint->host, grant.port, binary);
      covered = Either(covered, covers);
      if (covers == Cover::kYes) before.push_back(&other);
      if (covers != Cover::kYes && was.empty()) was = NarrowerText(other, grant, binary);
    }
    if (covered == Cover::kYes) {
      CompareRequests(grant, binary, before);
      CompareTraits(grant, binary, before);
      return;
    }
    std::string what = ConnectionText(grant, binary) + was;
    if (covered == Cover::kUnknown) return Changed(grant, what, binary, grant.endpoint->at);
    Opened(grant, what, binary, grant.endpoint->at);
  }

  // Returns what the other side has of a wider grant.
  std::string NarrowerText(const Grant& other, const Grant& grant,
                           const std::string& binary) const {
    bool narrower =
        other.port == grant.port && other.endpoint->host != grant.endpoint->host &&
        HostCovers(grant.endpoint->host, other.endpoint->host) == Cover::kYes &&
        AllowsConnection(other, other.endpoint->host, other.port, binary) == Cover::kYes;
    if (!narrower) return "";
    return std::string(after_ ? " (before: " : " (after: ") + other.endpoint->host + ")";
  }

  std::string ConnectionText(const Grant& grant, const std::string& binary) const {
    const policy::Endpoint& endpoint = *grant.endpoint;
    std::string text = "connections";
    if (endpoint.tls == policy::TlsMode::kSkip) return text + " without inspection";
    if (endpoint.protocol == policy::Protocol::kTcp) return "raw " + text;
    if (!IsJudged(to_, grant, binary)) return text + " with every request";
    if (!policy::JudgesRequests(endpoint.protocol)) return text;
    text += " with " + RulesText(endpoint.protocol, grant.rules);
    if (endpoint.enforcement == policy::Enforcement::kAudit) text += ", and the rest in audit mode";
    return text;
  }

  void CompareRequests(const Grant& grant, const std::string& binary,
                       const std::vector<const Grant*>& before) {
    bool was_judged = std::any_of(before.begin(), before.end(), [&](const Grant* other) {
      return IsJudged(from_, *other, binary);
    });
    if (!was_judged) return;  // Every request passed.
    if (!IsJudged(to_, grant, binary)) {
      bool everything = std::any_of(before.begin(), before.end(),
                                    [](const Grant* other) { return AllowsEverything(*other); });
      if (!everything) Opened(grant, "every request", binary, grant.endpoint->at);
      return;
    }
    if (!policy::JudgesRequests(grant.endpoint->protocol)) return;
    std::vector<policy::HttpRule> opened;
    std::vector<policy::HttpRule> unknown;
    for (const policy::HttpRule& rule : grant.rules) {
      Cover covers = Cover::kNo;
      for (const Grant* other : before) covers = Either(covers, AllowsRule(*other, grant, rule));
      if (covers == Cover::kNo) opened.push_back(rule);
      if (covers == Cover::kUnknown) unknown.push_back(rule);
    }
    policy::Protocol protocol = grant.endpoint->protocol;
    if (!opened.empty()) {
      Opened(grant, RulesText(protocol, opened), binary, opened.front().at);
    }
    if (!unknown.empty()) {
      Changed(grant, RulesText(protocol, unknown) + " (cannot be compared)", binary,
              unknown.front().at);
    }
  }

  void CompareTraits(const Grant& grant, const std::string& binary,
                     const std::vector<const Grant*>& before) {
    Texts traits;
    Texts ends;
    Texts addresses;
    for (const Grant* other : before) {
      for (std::string& trait : TraitsOf(*other->endpoint)) traits.push_back(std::move(trait));
      for (std::string& end : LooseEndsOf(*other->endpoint)) ends.push_back(std::move(end));
      const Texts& allowed = other->endpoint->allowed_ips;
      addresses.insert(addresses.end(), allowed.begin(), allowed.end());
    }
    codec::Position at = grant.endpoint->at;
    for (const std::string& trait : TraitsOf(*grant.endpoint)) {
      if (!Contains(traits, trait)) Changed(grant, trait, binary, at);
    }
    for (const std::string& end : LooseEndsOf(*grant.endpoint)) {
      if (!Contains(ends, end)) Opened(grant, end, binary, at);
    }
    for (const std::string& address : grant.endpoint->allowed_ips) {
      if (!addresses.empty() && !Contains(addresses, address)) {
        Opened(grant, "addresses in " + address, binary, at);
      }
    }
  }

  // A deny rule of `from` that `to` does not have, where `to` allows anything at all.
  void CompareDenials(const Grant& grant) {
    for (const std::string& binary : grant.policy->binaries) {
      std::vector<const Grant*> after;
      bool reachable = false;
      for (const Grant& other : to_) {
        bool meets =
            other.port == grant.port &&
            policy::HostsOverlap(other.endpoint->host, grant.endpoint->host) &&
            AllowsConnection(other, other.endpoint->host, other.port, binary) != Cover::kNo;
        reachable = reachable || meets;
        if (AllowsConnection(other, grant.endpoint->host, grant.port, binary) == Cover::kYes) {
          after.push_back(&other);
        }
      }
      if (!reachable) continue;
      for (const policy::HttpRule& rule : grant.endpoint->deny_rules)
        CompareDenial(grant, rule, binary, after);
    }
  }

  void CompareDenial(const Grant& grant, const policy::HttpRule& rule, const std::string& binary,
                     const std::vector<const Grant*>& after) {
    policy::Protocol protocol = grant.endpoint->protocol;
    Cover covers = Cover::kNo;
    for (const Grant* other : after) {
      if (other->endpoint->protocol != protocol) continue;
      Cover selected = SelectorCovers(other->endpoint->path, grant.endpoint->path);
      for (const policy::HttpRule& denied : other->endpoint->deny_rules) {
        bool same_query = denied.query.empty() == rule.query.empty();
        Cover one = same_query ? RuleCovers(protocol, denied, rule) : Cover::kUnknown;
        covers = Either(covers, Both(selected, one));
      }
    }
    if (covers == Cover::kYes) return;
    std::string text = RuleText(protocol, rule);
    if (covers == Cover::kUnknown) {
      Add(&changes_, grant,
          (after_ ? "no longer denies " : "now denies ") + text + " (cannot be compared)", binary,
          rule.at);
      return;
    }
    Opened(grant, text + (after_ ? ", no longer denied" : ", now denied"), binary, rule.at);
  }

  std::vector<Grant> from_;
  std::vector<Grant> to_;
  const std::vector<BoundSecret>& secrets_;
  bool after_;
  std::vector<Difference>& only_;
  std::vector<Difference>& changes_;
};

bool PutsSecret(const Grant& grant, const BoundSecret& secret) {
  const policy::Endpoint& endpoint = *grant.endpoint;
  bool inspected =
      endpoint.tls != policy::TlsMode::kSkip && endpoint.protocol != policy::Protocol::kTcp;
  return inspected && (endpoint.host.empty() || policy::HostMatches(endpoint.host, secret.host));
}

// Returns whether a secret is in reach of `binary`, in a policy with these grants.
bool IsInReach(const std::vector<Grant>& grants, const BoundSecret& secret, uint16_t port,
               const std::string& binary) {
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
    return PutsSecret(grant, secret) &&
           AllowsConnection(grant, secret.host, port, binary) == Cover::kYes;
  });
}

std::vector<CredentialReach> NewReaches(const policy::Policy& now, const policy::Policy& next,
                                        const std::vector<BoundSecret>& secrets) {
  std::vector<CredentialReach> reaches;
  std::vector<Grant> before = GrantsOf(now);
  for (const Grant& grant : GrantsOf(next)) {
    for (const BoundSecret& secret : secrets) {
      if (!PutsSecret(grant, secret)) continue;
      for (const std::string& binary : grant.policy->binaries) {
        if (IsInReach(before, secret, grant.port, binary)) continue;
        auto same = [&](const CredentialReach& other) {
          return std::tie(other.name, other.host, other.port, other.binary) ==
                 std::tie(secret.name, secret.host, grant.port, binary);
        };
        if (std::any_of(reaches.begin(), reaches.end(), same)) continue;
        reaches.push_back({secret.name, secret.host, grant.port, binary, grant.endpoint->at});
      }
    }
  }
  return reaches;
}

}  // namespace

PolicyDifference ComparePolicies(const policy::Policy& now, const policy::Policy& next,
                                 const std::vector<BoundSecret>& secrets) {
  PolicyDifference difference;
  OneWay(now, next, secrets, true, &difference.opens, &difference.changes).Compare();
  OneWay(next, now, secrets, false, &difference.closes, &difference.changes).Compare();
  CompareSystems(now, next, &difference);
  difference.reaches = NewReaches(now, next, secrets);
  Status live = policy::CheckLiveUpdate(now, next);
  if (!live.ok()) difference.live_refusal = live.error().what;
  return difference;
}

}  // namespace advise
