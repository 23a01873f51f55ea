// SPDX-License-Identifier: Apache-2.0
// Decides whether what a model's provider would do for a request is allowed by `hosted_tools`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/decide/hosted_uses.h"
#include "policy/decide/operation.h"
#include "policy/model/hosted_tools.h"

namespace policy {

// The protocol by which records name such uses, and the method of their operations: what is allowed
// is the operation's tool, and its fields are the domains.
inline constexpr std::string_view kHostedProtocol = "hosted-tools";
inline constexpr std::string_view kHostedMethod = "hosted_tools";

struct HostedVerdict {
  bool allowed = true;
  // The uses: those that are refused, or else all of them. Each once.
  std::vector<Operation> operations;
  std::string reason;  // Not empty if refused. Neutral, with the line that would allow it.
};

HostedVerdict DecideHostedUses(const std::vector<HostedAllowance>& allowed,
                               const std::vector<HostedUse>& uses);

// Returns "hosted_tools: [web_search]", the line that would allow just `operations` of a refusal;
// empty if a text of theirs cannot be written in one.
std::string HostedLine(const std::vector<Operation>& operations);

}  // namespace policy
