// SPDX-License-Identifier: Apache-2.0
// What a request asked for behind its method and path, and the rules that would allow just that.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace policy {

struct BodyDecision;  // body_decide.h
struct Denial;        // suggest.h

// An operation of GraphQL, or a call of JSON-RPC or MCP, by the keys of a rule. All texts are the
// client's.
struct Operation {
  std::string operation_type;       // GraphQL: "query", "mutation" or "subscription".
  std::string operation_name;       // Likewise; empty: none.
  std::vector<std::string> fields;  // Its root fields.
  std::string persisted_query;      // GraphQL, in place of a type: its hash or id is all there was.
  std::string method;               // A call.
  std::string tool;                 // Of MCP's tools/call.

  friend bool operator==(const Operation&, const Operation&) = default;
};

// What rules refused, or would have but for audit: all operations of the request, each once. Empty
// for what no rule was asked about (malformed), and where it is more than a record holds.
std::vector<Operation> RefusedOperations(const BodyDecision& decision);

// "mutation Open {createIssue}", "persisted query 3f2a", "tools/call drop_tables". Not neutral.
std::string OperationText(const Operation& operation);

// What an endpoint needs for a denied request to pass, as YAML on one line each.
struct EndpointAddition {
  std::vector<std::string> rules;    // "{operation_type: mutation, fields: ['createIssue']}".
  std::vector<std::string> queries;  // Of graphql_persisted_queries: "'3f2a': {...}".
};

// "{allow: RULE}, {allow: RULE}": what stands in the brackets of `rules`.
std::string RuleList(const std::vector<std::string>& rules);

// Of a request or message that the endpoint's protocol judges (Denial::protocol). A query that came
// as a hash is let pass by the hash alone, whatever it does. Nothing where no rule would say just
// that: a name that is no plain word, or a pattern.
std::optional<EndpointAddition> AdditionFor(const Denial& denial);

}  // namespace policy
