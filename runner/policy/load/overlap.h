// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/load/parse.h"
#include "policy/model/policy.h"

namespace policy {

// Endpoints that may meet on one host and port must agree on how the connection is handled, and on
// how its requests are judged where their paths are equally specific (OpenShell's ambiguity check).
// Fails with kInvalid at the later of the two.
Status CheckOverlaps(const std::string& file, const Policy& policy);

// Calls (json-rpc, mcp) that an endpoint's rules do not allow pass all the same where a wider
// endpoint for requests allows their POST (OpenShell; an endpoint for GraphQL refuses them).
std::vector<Warning> FindBypassedCalls(const Policy& policy);

// Returns how narrow an endpoint's path selector is: the number of its characters but for '*'.
size_t PathSpecificity(const Endpoint& endpoint);

}  // namespace policy
