// SPDX-License-Identifier: Apache-2.0
#include "policy/model/hosted_tools.h"

#include <algorithm>

#include "base/join.h"

namespace policy {

const HostedKind* FindHostedKind(std::string_view name) {
  const auto* found = std::ranges::find(kHostedKinds, name, &HostedKind::name);
  return found == kHostedKinds.end() ? nullptr : found;
}

std::string RenderHostedTools(const std::vector<HostedAllowance>& list) {
  if (list.empty()) return "none";
  std::vector<std::string> entries;
  for (const HostedAllowance& one : list) {
    std::string entry = one.kind.starts_with(kTypeEntry) ? "'" + one.kind + "'" : one.kind;
    if (!one.domains.empty()) entry += ": {domains: [" + Join(one.domains) + "]}";
    entries.push_back(std::move(entry));
  }
  return "[" + Join(entries) + "]";
}

}  // namespace policy
