// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "policy/model/policy.h"

namespace policy {

// Returns the rules an access preset stands for (OpenShell): of GraphQL operations with kGraphql,
// of handshakes and text messages with kWebSocket, else of requests, all of path "**" and
// read-write without DELETE. None for Access::kNone.
std::vector<HttpRule> ExpandAccess(Protocol protocol, Access access, codec::Position at);

// Returns the rule for requests with this method and path.
HttpRule RequestRule(std::string_view method, std::string_view path, codec::Position at);

// Leaves of the endpoint's rules those that read: of requests GET, HEAD, OPTIONS and git's
// fetching, of GraphQL queries, and no WebSocket. Returns whether any is left: the traffic of other
// protocols does not say whether it writes.
bool KeepReading(Endpoint* endpoint);

// Returns "read-only", "read-write" or "full"; empty for kNone.
std::string_view AccessName(Access access);

// Returns the names in the order of the values of Access behind kNone.
std::vector<std::string_view> AccessNames();

// False for a method (upper case) that policy authors are unlikely to mean.
bool IsKnownMethod(Protocol protocol, std::string_view method);

}  // namespace policy
