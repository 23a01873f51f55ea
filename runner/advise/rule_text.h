// SPDX-License-Identifier: Apache-2.0
// Rules as text, for people who compare policies.
#pragma once

#include <string>
#include <vector>

#include "policy/model/policy.h"

namespace advise {

// Returns a rule as text: "GET /repos/** with tag=v*", "query Name {viewer}", "tools/call of
// read_*", "SELECT".
std::string RuleText(policy::Protocol protocol, const policy::HttpRule& rule);

// Returns all of them, separated by semicolons; neighbours that differ in their method alone are
// one: "GET, HEAD **".
std::string RulesText(policy::Protocol protocol, const std::vector<policy::HttpRule>& rules);

}  // namespace advise
