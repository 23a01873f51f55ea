// SPDX-License-Identifier: Apache-2.0
// That the gateway's records lead to these patches is tests/policy/suggest_test.py.
#include "advise/operation_rule.h"

#include <catch2/catch.hpp>

#include "advise/suggest.h"
#include "advise/suggest_patch.h"
#include "policy/decide/body_decide.h"
#include "policy/load/parse.h"

namespace advise {
namespace {

policy::ParseContext FileContext() {
  policy::ParseContext context;
  context.file = "p.yml";
  return context;
}

Denial Refused(const std::string& protocol, std::vector<policy::Operation> operations) {
  return {"api.example.com", 443, "POST", "/a", "/bin/curl", protocol, std::move(operations)};
}
policy::Operation Mutation(std::vector<std::string> fields) {
  return {"mutation", "Any", std::move(fields), "", "", ""};
}
policy::Operation Persisted(const std::string& id) { return {"", "", {}, id, "", ""}; }
policy::Operation Call(const std::string& method, const std::string& tool = "") {
  return {"", "", {}, "", method, tool};
}

std::string PolicyWith(const std::string& endpoint) {
  return "version: 1\nnetwork_policies:\n  api:\n    binaries: [{path: /bin/curl}]\n"
         "    endpoints:\n" +
         endpoint;
}

// Returns the indices of the `denials` that the policy `text` refuses.
std::string RefusedBy(const std::string& text, const std::vector<Denial>& denials) {
  std::string refused;
  for (size_t i = 0; i < denials.size(); ++i) {
    SuggestedPatch patch = SuggestPatch(text, FileContext(), {denials[i]}).value();
    if (!patch.patch.empty() || !patch.notes.empty()) refused += std::to_string(i);
  }
  return refused;
}

// The patch that lets the first denial pass leaves the others refused.
void CheckNarrow(const std::string& policy, const std::vector<Denial>& denials) {
  INFO(policy);
  std::string all;
  for (size_t i = 0; i < denials.size(); ++i) all += std::to_string(i);
  CHECK(RefusedBy(policy, denials) == all);
  SuggestedPatch suggested = SuggestPatch(policy, FileContext(), {denials[0]}).value();
  INFO(suggested.text);
  CHECK(suggested.notes.empty());
  CHECK(RefusedBy(suggested.text, denials) == all.substr(1));
  CHECK(suggested.patch.find("# Refused in a run") != std::string::npos);
}

TEST_CASE("An operation is allowed in the endpoint that refused it, however that is written") {
  const std::vector<Denial> denials = {
      Refused("graphql", {Mutation({"createIssue"})}),
      Refused("graphql", {Mutation({"closeIssue"})}),
      Refused("graphql", {{"subscription", "", {"createIssue"}, "", "", ""}}),
      Refused("graphql", {Mutation({"createIssue", "closeIssue"})})};
  for (const char* endpoint :
       {"      - host: api.example.com\n        port: 443\n        path: /a\n"
        "        protocol: graphql\n        access: read-only  # Reads.\n",
        "      - host: api.example.com\n        port: 443\n        protocol: graphql\n"
        "        rules:\n          # Ours.\n          - allow: {operation_type: query}\n",
        "      - host: api.example.com\n        port: 443\n        protocol: graphql\n"
        "        rules: [{allow: {operation_type: query}}]\n",
        "      - {host: api.example.com, port: 443, protocol: graphql, access: 'read-only'}\n",
        "      - {host: api.example.com, port: 443, protocol: graphql,\n"
        "         rules: [\n           {allow: {operation_type: query}}]}\n"}) {
    CheckNarrow(PolicyWith(endpoint), denials);
  }
  SuggestedPatch suggested =
      SuggestPatch(PolicyWith("      - {host: api.example.com, port: 443, protocol: graphql, "
                              "access: read-only}\n"),
                   FileContext(), {denials[3]})
          .value();
  CHECK(suggested.text.find("rules: [{allow: {operation_type: query}}, {allow: {operation_type: "
                            "mutation, fields: ['createIssue', 'closeIssue']}}]") !=
        std::string::npos);
}

TEST_CASE("A persisted query is let pass by its hash alone") {
  const std::vector<Denial> denials = {
      Refused("graphql", {Persisted("3f2a")}), Refused("graphql", {Persisted("3f2b")}),
      Refused("graphql", {{"query", "3f2a", {"viewer"}, "", "", ""}})};
  for (const char* endpoint :
       {"      - host: api.example.com\n        port: 443\n        protocol: graphql\n"
        "        rules: [{allow: {operation_type: query, fields: [other]}}]\n",
        "      - {host: api.example.com, port: 443, protocol: graphql, persisted_queries: deny,\n"
        "         rules: [{allow: {operation_type: query, fields: [other]}}]}\n",
        "      - host: api.example.com\n        port: 443\n        protocol: graphql\n"
        "        persisted_queries: allow_registered\n        graphql_persisted_queries:\n"
        "          known: {operation_type: query, fields: [other]}\n"
        "        rules: [{allow: {operation_type: query, fields: [other]}}]\n",
        "      - host: api.example.com\n        port: 443\n        protocol: graphql\n"
        "        graphql_persisted_queries: {known: {operation_type: query, fields: [other]}}\n"
        "        rules:\n          - allow: {operation_type: query, fields: [other]}\n"}) {
    CheckNarrow(PolicyWith(endpoint), denials);
  }
}

TEST_CASE("A call is allowed by its method, and one of a tool by the tool") {
  CheckNarrow(PolicyWith("      - host: api.example.com\n        port: 443\n"
                         "        protocol: json-rpc\n        rules:\n"
                         "          - allow: {method: ping}\n"),
              {Refused("json-rpc", {Call("eth_call"), Call("ping")}),
               Refused("json-rpc", {Call("eth_send")})});
  CheckNarrow(
      PolicyWith("      - host: api.example.com\n        port: 443\n"
                 "        protocol: mcp\n        rules:\n"
                 "          - allow: {method: tools/call, tool: read_status}\n"),
      {Refused("mcp", {Call("tools/call", "list_issues")}),
       Refused("mcp", {Call("tools/call", "drop_tables")}), Refused("mcp", {Call("tools/list")})});
}

TEST_CASE("A message of a WebSocket is allowed as its endpoint judges it") {
  Denial message = {"api.example.com", 443, "WEBSOCKET_TEXT", "/a", "/bin/curl", "websocket"};
  Denial elsewhere = message;
  elsewhere.path = "/b";
  CheckNarrow(PolicyWith("      - {host: api.example.com, port: 443, protocol: websocket, access: "
                         "read-only,\n         websocket_credential_rewrite: true}\n"),
              {message, elsewhere});
  message.operations = {{"subscription", "", {"prices"}, "", "", ""}};
  elsewhere = message;
  elsewhere.operations = {{"subscription", "", {"news"}, "", "", ""}};
  CheckNarrow(PolicyWith("      - host: api.example.com\n        port: 443\n        path: /a\n"
                         "        protocol: websocket\n        rules:\n"
                         "          - allow: {method: GET, path: /a}\n"
                         "          - allow: {operation_type: subscription, fields: [titles]}\n"),
              {message, elsewhere});
}

TEST_CASE("An ancestor's policy is edited, and every endpoint that has a say") {
  Denial denial = Refused("graphql", {Mutation({"createIssue"})});
  denial.binary = "/bin/wget";
  denial.ancestors = {"/bin/sh", "/bin/curl"};
  std::string policy = PolicyWith(
      "      - {host: api.example.com, port: 443, protocol: graphql, access: read-only}\n"
      "  second:\n    binaries: [{path: /bin/sh}]\n    endpoints:\n"
      "      - {host: '*.example.com', port: 443, protocol: graphql, access: read-only}\n");
  SuggestedPatch suggested = SuggestPatch(policy, FileContext(), {denial}).value();
  CHECK(suggested.notes.empty());
  CHECK(RefusedBy(suggested.text, {denial}).empty());
  CHECK(suggested.text.find("allow_api_example_com") == std::string::npos);
}

TEST_CASE("No rule is suggested for a name that would be a pattern, or break out of its line") {
  for (const Denial& denial :
       {Refused("json-rpc", {Call("*")}), Refused("mcp", {Call("tools/*")}),
        Refused("mcp", {Call("tools/call")}), Refused("mcp", {Call("tools/call", "a*")}),
        Refused("json-rpc", {Call("x'}}]\n  evil: 1")}), Refused("json-rpc", {Call("a b")}),
        Refused("json-rpc", {Call(std::string(300, 'x'))}),
        Refused("json-rpc", {Call("caf\xc3\xa9")}), Refused("graphql", {Persisted("a*")}),
        Refused("graphql", {Persisted("")}), Refused("graphql", {Mutation({"a", "b'"})}),
        Refused("graphql", {Mutation({})}),
        Refused("graphql", {{"sub\nscription", "", {"a"}, "", "", ""}}),
        Refused("evil: 1", {Call("ping")}), Refused("mcp", {})}) {
    CHECK(SuggestPolicy({denial}).empty());
    std::string policy = PolicyWith(
        "      - host: api.example.com\n        port: 443\n        protocol: json-rpc\n"
        "        rules:\n          - allow: {method: initialize}\n");
    SuggestedPatch suggested = SuggestPatch(policy, FileContext(), {denial}).value();
    CHECK(suggested.patch.empty());
    REQUIRE(suggested.notes.size() == 1);
    CHECK(suggested.notes[0].find('\n') == std::string::npos);
  }
  CHECK(SuggestLine(Refused("json-rpc", {Call("*")})).empty());
  CHECK(SuggestLine(Refused("mcp", {})).empty());
}

TEST_CASE("The line that allows an operation is the rules of its endpoint") {
  CHECK(SuggestLine(Refused("graphql", {Mutation({"createIssue"})})) ==
        "rules: [{allow: {operation_type: mutation, fields: ['createIssue']}}]");
  CHECK(SuggestLine(Refused("mcp", {Call("tools/call", "x"), Call("tools/list")})) ==
        "rules: [{allow: {method: 'tools/call', tool: 'x'}}, {allow: {method: 'tools/list'}}]");
  CHECK(SuggestLine(Refused("graphql", {Persisted("3f2a")})) ==
        "{persisted_queries: allow_registered, graphql_persisted_queries: {'3f2a': "
        "{operation_type: query, fields: ['persisted:3f2a']}}, rules: [{allow: {operation_type: "
        "query, fields: ['persisted:3f2a']}}]}");
  CHECK(SuggestLine({"a.example.com", 443, "WEBSOCKET_TEXT", "/", "", "websocket"}) ==
        "rules: [{allow: {method: 'GET', path: '/'}}, {allow: {method: 'WEBSOCKET_TEXT', path: "
        "'/'}}]");
}

TEST_CASE("SuggestPolicy allows operations, and what else was refused at the same place") {
  Denial message = {"api.example.com", 443, "WEBSOCKET_TEXT", "/ws", "/bin/curl", "websocket"};
  Denial rest = {"api.example.com", 443, "GET", "/rest", "/bin/curl"};
  const std::vector<Denial> denials = {Refused("graphql", {Mutation({"createIssue"})}),
                                       Refused("graphql", {Persisted("3f2a")}), message, rest};
  Denial tool = Refused("mcp", {Call("tools/call", "x")});
  tool.path = "/mcp";
  std::vector<Denial> all = denials;
  all.push_back(tool);
  const std::string yaml = SuggestPolicy(all);
  INFO(yaml);
  CHECK(RefusedBy(yaml, all).empty());
  Denial neighbour = tool;
  neighbour.operations[0].tool = "y";
  CHECK(RefusedBy(yaml, {Refused("graphql", {Mutation({"closeIssue"})}), neighbour}) == "01");
  CHECK(yaml.find("#   - \"api.example.com:443:read-only:websocket\"\n") != std::string::npos);
}

TEST_CASE("An 'endpoints:' file has no rules for operations, and says so") {
  SuggestedPatch suggested = SuggestPatch("endpoints:\n  - a.example:443\ndefaults: none\n",
                                          FileContext(), {Refused("mcp", {Call("tools/list")})})
                                 .value();
  CHECK(suggested.patch.empty());
  CHECK(
      suggested.notes.at(0) ==
      "POST /a at api.example.com:443, tools/list by /bin/curl: an 'endpoints:' file has no rules "
      "for operations");
}

TEST_CASE("RefusedOperations keeps each operation once, of what rules refused alone") {
  policy::JudgedBody decision;
  decision.verdict.reason = policy::Reason::kNotPermitted;
  decision.calls = {{"a", ""}, {"tools/call", "x"}, {"a", ""}};
  std::vector<policy::Operation> operations = policy::RefusedOperations(decision);
  REQUIRE(operations.size() == 2);
  CHECK(policy::OperationText(operations[1]) == "tools/call x");
  decision.verdict.reason = policy::Reason::kRpcMalformed;
  CHECK(policy::RefusedOperations(decision).empty());
  decision.verdict.reason = policy::Reason::kAllowed;
  CHECK(policy::RefusedOperations(decision).empty());
  decision.verdict.reason = policy::Reason::kGraphqlBlocked;
  decision.calls.clear();
  decision.operations = {{"query", "N", {"a", "b"}, "id"}, {"", "N", {}, "id"}};
  operations = policy::RefusedOperations(decision);
  REQUIRE(operations.size() == 2);
  CHECK(policy::OperationText(operations[0]) == "query N {a, b}");
  CHECK(policy::OperationText(operations[1]) == "persisted query id");
  for (int i = 0; i < 20; ++i)
    decision.operations.push_back({"query", std::to_string(i), {"a"}, ""});
  CHECK(policy::RefusedOperations(decision).empty());
}

}  // namespace
}  // namespace advise
