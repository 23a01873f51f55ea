// SPDX-License-Identifier: Apache-2.0
#include "policy/decide/hosted_decide.h"

#include <algorithm>

#include "base/ascii.h"
#include "codec/text/neutral.h"
#include "policy/model/host_pattern.h"

namespace policy {
namespace {

constexpr size_t kHostedNameBytesMax = 100;
constexpr size_t kHostedUsesMax = 16;  // A record has no more.
constexpr size_t kHostedDomainsMax = 8;

// Returns whether `domain` is `above` or below it. Odd texts are below nothing.
bool IsWithin(std::string_view domain, std::string_view above) {
  const std::string name = CanonicalHost(domain);
  if (name.empty() || name.find_first_not_of(kDomainCharacters) != std::string::npos) return false;
  return name == above || (name.size() > above.size() && name.ends_with(above) &&
                           name[name.size() - above.size() - 1] == '.');
}

// The name of its entry.
std::string EntryOf(const HostedUse& use) {
  return use.kind.empty() ? std::string(kTypeEntry) + use.name : use.kind;
}

bool Allows(const HostedAllowance& entry, const HostedUse& use) {
  if (entry.kind != EntryOf(use)) return false;
  if (entry.domains.empty()) return true;
  return use.bounded && std::ranges::all_of(use.domains, [&](const std::string& domain) {
           return std::ranges::any_of(
               entry.domains, [&](const std::string& above) { return IsWithin(domain, above); });
         });
}

bool TakesDomains(std::string_view kind) {
  const HostedKind* known = FindHostedKind(kind);
  return known != nullptr && known->takes_domains;
}

Operation OperationOf(const HostedUse& use) {
  Operation operation;
  operation.method = kHostedMethod;
  operation.tool = codec::NeutralLine(EntryOf(use), kHostedNameBytesMax);
  const bool shown = use.bounded && use.domains.size() <= kHostedDomainsMax;
  if (!TakesDomains(use.kind) || !shown) return operation;
  for (const std::string& domain : use.domains) {
    operation.fields.push_back(codec::NeutralLine(ascii::LowerCase(domain), kHostedNameBytesMax));
  }
  return operation;
}

std::string ReasonOf(const std::vector<HostedAllowance>& allowed, const HostedUse& use) {
  const std::string name = codec::NeutralLine(use.name, kHostedNameBytesMax);
  for (const HostedAllowance& entry : allowed) {
    if (entry.kind != EntryOf(use)) continue;
    return "'" + name + "' is allowed only for domains that the request does not keep to: " +
           RenderHostedTools({entry});
  }
  if (use.kind == kUnread) return "a request to a model that cannot be read: " + name;
  if (use.kind == kUrls) return "the model's provider would fetch from '" + name + "'";
  return "'" + name + "' is run by the model's provider";
}

}  // namespace

HostedVerdict DecideHostedUses(const std::vector<HostedAllowance>& allowed,
                               const std::vector<HostedUse>& uses) {
  HostedVerdict verdict;
  std::vector<Operation> refused;
  std::vector<Operation> all;
  auto add = [](std::vector<Operation>& list, Operation operation) {
    const bool known = std::ranges::find(list, operation) != list.end();
    if (!known && list.size() < kHostedUsesMax) list.push_back(std::move(operation));
  };
  for (const HostedUse& use : uses) {
    add(all, OperationOf(use));
    const bool passes = std::ranges::any_of(
        allowed, [&](const HostedAllowance& entry) { return Allows(entry, use); });
    if (passes) continue;
    if (verdict.reason.empty()) verdict.reason = ReasonOf(allowed, use);
    add(refused, OperationOf(use));
  }
  verdict.allowed = verdict.reason.empty();
  verdict.operations = verdict.allowed ? std::move(all) : std::move(refused);
  if (verdict.allowed) return verdict;
  const std::string line = HostedLine(verdict.operations);
  if (!line.empty()) verdict.reason += "; add to the policy: " + line;
  return verdict;
}

std::string HostedLine(const std::vector<Operation>& operations) {
  constexpr std::string_view kOfType =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:./=";
  std::vector<HostedAllowance> entries;
  for (const Operation& one : operations) {
    const bool known = FindHostedKind(one.tool) != nullptr;
    const bool type = one.tool.size() > kTypeEntry.size() && one.tool.starts_with(kTypeEntry) &&
                      one.tool.find_first_not_of(kOfType) == std::string::npos;
    if (!known && !type) return "";
    HostedAllowance entry{one.tool, one.fields};
    for (const std::string& domain : entry.domains) {
      const bool plain =
          !domain.empty() && domain.find_first_not_of(kDomainCharacters) == std::string::npos;
      if (!plain) entry.domains.clear();
      if (!plain) break;
    }
    if (std::ranges::find(entries, entry) == entries.end()) entries.push_back(std::move(entry));
  }
  return entries.empty() ? "" : std::string(kHostedMethod) + ": " + RenderHostedTools(entries);
}

}  // namespace policy
