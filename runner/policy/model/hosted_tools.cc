// SPDX-License-Identifier: Apache-2.0
#include "policy/model/hosted_tools.h"

#include "base/join.h"

namespace policy {

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
