// SPDX-License-Identifier: Apache-2.0
// Parses what a policy says about JSON-RPC calls, including MCP's.
#pragma once

#include <vector>

#include "base/result.h"
#include "policy/load/fields.h"
#include "policy/model/policy.h"

namespace policy {

// Parses one match of `protocol: json-rpc` or `mcp`: a rule per tool that it names, else one. Fails
// with kInvalid and the place.
Result<std::vector<HttpRule>> ParseCallMatch(Reader* reader, const Fields& fields,
                                             const Endpoint& endpoint);

// Fails if another protocol's rule has `tool` or `params`, which belong to MCP alone.
Status RefuseTools(const Reader& reader, const Fields& fields);

// Fails if, with MCP, one rule covers every `tools/call` and another names a tool: they contradict
// each other.
Status CheckToolConflicts(const Reader& reader, const Endpoint& endpoint);

}  // namespace policy
