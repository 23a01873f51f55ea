// SPDX-License-Identifier: Apache-2.0
// The rules that would allow exactly the operation in a request's body.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/decide/operation.h"

namespace advise {

struct Denial;  // suggest.h

// The addition that an endpoint needs for a denied request to pass, as YAML on one line each.
struct EndpointAddition {
  std::vector<std::string> rules;    // "{operation_type: mutation, fields: ['createIssue']}".
  std::vector<std::string> queries;  // The entries for graphql_persisted_queries: "'3f2a': {...}".
};

// Returns what stands in the brackets of `rules`: "{allow: RULE}, {allow: RULE}".
std::string RuleList(const std::vector<std::string>& rules);

// Returns the addition for a request or message that the endpoint's protocol judges
// (Denial::protocol). A query that came as a hash is let pass by the hash alone, whatever it does.
// Returns nullopt where no rule would say exactly that: for a name that is not a plain word, or is
// a pattern.
std::optional<EndpointAddition> AdditionFor(const Denial& denial);

}  // namespace advise
