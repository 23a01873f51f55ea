// SPDX-License-Identifier: Apache-2.0
// A policy as a list of what it grants, so that two policies can be compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advise/cover.h"
#include "policy/model/policy.h"

namespace advise {

// One endpoint on one port, with the programs that may use it. Borrows from the policy.
struct Grant {
  const policy::NetworkPolicy* policy = nullptr;
  const policy::Endpoint* endpoint = nullptr;
  uint16_t port = 0;
  std::vector<policy::HttpRule> rules;  // Effective: MCP's "every method" is one of them.

  std::string Subject() const;  // "api.example.com:443", with the path selector where there is one.
};

// The method of the rule that stands for MCP's every method where rules name tools.
inline constexpr std::string_view kAllButTools = "every call but tools/call";

std::vector<Grant> GrantsOf(const policy::Policy& policy);

// Returns whether `binary` may open every connection of `host` and `port` that the grant is about.
Cover AllowsConnection(const Grant& grant, const std::string& host, uint16_t port,
                       const std::string& binary);

// Returns whether requests of `binary` to what `grant` is about are judged: by it, or by another
// grant that covers it.
bool IsJudged(const std::vector<Grant>& grants, const Grant& grant, const std::string& binary);

// Returns whether `wide` allows what rule `rule` of `narrow` allows, judged by the requests alone.
Cover AllowsRule(const Grant& wide, const Grant& narrow, const policy::HttpRule& rule);

}  // namespace advise
