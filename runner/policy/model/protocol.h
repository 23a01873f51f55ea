// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "policy/model/policy.h"

namespace policy {

// Returns the name of the protocol as `protocol` has it in a file; empty for kL4.
std::string_view ProtocolName(Protocol protocol);
// Returns the names in the order of the values of Protocol behind kL4.
std::vector<std::string_view> ProtocolNames();

// Returns whether requests are judged at all: not with kL4 and kTcp.
bool JudgesRequests(Protocol protocol);

// True for a WebSocket endpoint that judges text messages as GraphQL operations: it registers
// queries, or a rule of it names an operation (OpenShell). Then no other rule lets an operation
// pass.
bool CarriesGraphql(const Endpoint& endpoint);

}  // namespace policy
