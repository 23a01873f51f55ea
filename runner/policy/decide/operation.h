// SPDX-License-Identifier: Apache-2.0
// The operation that a request's body asks for, beyond its method and path.
#pragma once

#include <string>
#include <vector>

namespace policy {

struct JudgedBody;  // body_decide.h

// An operation of GraphQL, or a call of JSON-RPC or MCP, by the keys of a rule, or a use of a tool
// of a model's provider (hosted_decide.h). All texts are the client's.
struct Operation {
  std::string operation_type;       // GraphQL: "query", "mutation" or "subscription".
  std::string operation_name;       // Likewise; empty if there is none.
  std::vector<std::string> fields;  // Its root fields.
  std::string persisted_query;      // GraphQL, in place of a type: its hash or id is all there was.
  std::string method;               // A call.
  std::string tool;                 // The tool of MCP's tools/call.

  friend bool operator==(const Operation&, const Operation&) = default;
};

// Returns what rules refused, or would have but for audit: all operations of the request, each
// once. Empty for a malformed request, about which no rule was asked, and where it is more than a
// record holds.
std::vector<Operation> RefusedOperations(const JudgedBody& decision);

// Returns text such as "mutation Open {createIssue}", "persisted query 3f2a" or "tools/call
// drop_tables" or "hosted_tools web_search (docs.example.com)". Not neutral.
std::string OperationText(const Operation& operation);

}  // namespace policy
