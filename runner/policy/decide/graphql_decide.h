// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "codec/call/graphql.h"
#include "policy/decide/compiled.h"

namespace policy {

// Decides whether a request may run these operations. `operations` are all that its body or query
// holds (at least one). OpenShell's rules: every operation must be allowed by one and the same
// endpoint, whose rule names its type, its name and, where the rule lists fields, all the root
// fields it selects; a deny rule fires when one operation matches it, by one field. A graphql
// endpoint, and a websocket endpoint that carries GraphQL, is authoritative on its path: no broader
// rule allows what its rules do not. A persisted query that comes without its document is what the
// endpoint's registry says it is; one that is not registered is refused.
Verdict DecideGraphql(const Route& route, const HttpRequest& request,
                      std::span<const codec::GraphqlOperation> operations);

}  // namespace policy
