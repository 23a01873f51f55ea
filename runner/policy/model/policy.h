// SPDX-License-Identifier: Apache-2.0
// The permissions of a run: the values that every decision is based on. Both forms of
// `.agentic-ci/openshell-policy.yml` become this one `Policy`. Values only; no behaviour but how
// the gateway's process gets them (base/wire.h). The schema is OpenShell's policy YAML; where its
// code and documents differ, docs/decisions.md says which reading is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire.h"
#include "codec/data/position.h"
#include "policy/model/after_untrusted.h"
#include "policy/model/hosted_tools.h"

namespace policy {

// With kL4 the connection alone is judged; with kTcp too, and it is captured from programs that
// know no proxy. The others judge each request or message; kSql can only be audited (OpenShell).
enum class Protocol { kL4, kTcp, kRest, kWebSocket, kGraphql, kSql, kJsonRpc, kMcp };
enum class TlsMode { kAuto, kSkip };
enum class Enforcement { kEnforce, kAudit };
enum class Access { kNone, kReadOnly, kReadWrite, kFull };

// One query key and the globs of which a value must match one.
struct QueryMatcher {
  std::string key;
  std::vector<std::string> any;
};
WIRE_ALL(QueryMatcher, key, any)

// One entry of `rules` (its `allow`) or of `deny_rules`. Which fields mean something follows from
// the endpoint's protocol.
struct HttpRule {
  // rest and websocket: upper case, "*" is any, "WEBSOCKET_TEXT" is one text message. json-rpc and
  // mcp: the method of the call, exact, "*", or with mcp a glob behind "tools/". Never empty there.
  std::string method;
  std::string path;  // rest and websocket: glob; "**" is everything.
  std::vector<QueryMatcher> query;
  // graphql, and websocket that carries it. Not empty there: "query", "mutation", "subscription" or
  // "*".
  std::string operation_type;
  std::string operation_name;       // Glob; empty is any.
  std::vector<std::string> fields;  // Globs of root fields; empty is any.
  std::string tool;                 // mcp: glob of the tool's name; empty is any.
  std::string command;              // sql: "*" is any, else compared in any case.
  codec::Position at;
};
WIRE_ALL(HttpRule, method, path, query, operation_type, operation_name, fields, tool, command, at)

// A GraphQL query that the policy knows by its hash or id.
struct PersistedQuery {
  std::string id;
  std::string operation_type;
  std::string operation_name;
  std::vector<std::string> fields;
};
WIRE_ALL(PersistedQuery, id, operation_type, operation_name, fields)

enum class Signing { kNone, kSigV4, kSigV4Body, kSigV4NoBody };

struct McpOptions {
  bool strict_tool_names = true;
  // Every method passes, but for "tools/call" where a rule names a tool: there the rules decide.
  bool allow_all_known_methods = false;
};
WIRE_ALL(McpOptions, strict_tool_names, allow_all_known_methods)

struct Endpoint {
  std::string
      host;  // Lower case; a pattern iff it contains '*'; empty for any host (allowed_ips decide).
  std::vector<uint16_t> ports;  // At least one.
  std::string path;             // Selector glob; empty is every path.
  Protocol protocol = Protocol::kL4;
  bool protocol_implied = false;  // `access` without `protocol`: read as kRest.
  TlsMode tls = TlsMode::kAuto;
  Enforcement enforcement = Enforcement::kEnforce;
  Access access = Access::kNone;
  // Effective rules: an access preset is already expanded into them. Empty with kL4 and no access:
  // no request rule, the connection alone is judged.
  std::vector<HttpRule> rules;
  std::vector<HttpRule> deny_rules;
  bool only_reads = false;  // KeepReading(): a WebSocket, which carries anything, is refused too.
  std::vector<std::string> allowed_ips;  // CIDR or bare addresses, validated.
  bool allow_encoded_slash = false;
  // Credentials: placeholders in WebSocket text and in request bodies are replaced only on demand;
  // a host that a credential is bound to must be inspected unless this is said.
  bool websocket_credential_rewrite = false;
  bool request_body_credential_rewrite = false;
  bool allow_uninspected_credentials = false;
  Signing signing = Signing::kNone;
  std::string signing_service;      // Not empty with signing.
  std::string signing_region;       // If empty, from the host's name.
  std::string credential_provider;  // `credential_binding.provider`; may be empty.
  // graphql.
  bool allow_registered_queries = false;  // `persisted_queries: allow_registered`.
  std::vector<PersistedQuery> persisted_queries;
  // The bound on a body that is judged whole: graphql_max_body_bytes, json_rpc or mcp
  // max_body_bytes.
  uint32_t body_bytes_max = 65536;
  McpOptions mcp;
  // Narrow() set `host` in place of a pattern: private addresses stay closed.
  bool of_pattern = false;
  codec::Position at;
};
WIRE_ALL(Endpoint, host, ports, path, protocol, protocol_implied, tls, enforcement, access, rules,
         deny_rules, only_reads, allowed_ips, allow_encoded_slash, websocket_credential_rewrite,
         request_body_credential_rewrite, allow_uninspected_credentials, signing, signing_service,
         signing_region, credential_provider, allow_registered_queries, persisted_queries,
         body_bytes_max, mcp, of_pattern, at)

// Stands in place of a path for the agent, whose connections the short form is about: the command a
// run starts, whatever it executes, and everything it starts. An executable would not name it: a
// script is run by its interpreter, `env node` by node, a shell replaces itself by its only
// command, and what the agent builds anew is another program than the one before. No file may have
// it as a path.
inline constexpr std::string_view kAgentPrograms = "the agent";

// One `network_policies` entry, or the one that an `endpoints:` list becomes.
struct NetworkPolicy {
  std::string key;   // The map key: decides which policy is named when several match.
  std::string name;  // Shown in logs and deny bodies; defaults to the key.
  std::vector<Endpoint> endpoints;
  // Paths, globs or kAgentPrograms; empty matches no program at all.
  std::vector<std::string> binaries;
  codec::Position at;
};
WIRE_ALL(NetworkPolicy, key, name, endpoints, binaries, at)

struct FilesystemPolicy {
  bool include_workdir = true;
  std::vector<std::string> read_only;
  std::vector<std::string> read_write;
};

enum class LandlockMode { kBestEffort, kHardRequirement };

struct ProcessPolicy {
  std::optional<std::string> run_as_user;
  std::optional<std::string> run_as_group;
};

// One `network_middlewares` entry: the built-in `openshell/regex`, which writes [REDACTED] over
// what looks like a key (`sk-...`) in request bodies and WebSocket text.
struct Middleware {
  std::string name;  // Shown in records; defaults to the key.
  int32_t order = 0;
  bool fail_open = false;  // If true, what cannot be looked into passes; otherwise it is refused.
  std::vector<std::string> include;  // Host patterns, at least one.
  std::vector<std::string> exclude;
  codec::Position at;
};
WIRE_ALL(Middleware, name, order, fail_open, include, exclude, at)

struct Policy {
  FilesystemPolicy filesystem;
  LandlockMode landlock = LandlockMode::kBestEffort;
  ProcessPolicy process;
  std::vector<NetworkPolicy> network;   // Sorted by key.
  std::vector<Middleware> middlewares;  // By `order`.
  // The tools of models' providers that requests to models may ask for.
  std::vector<HostedAllowance> hosted_tools;
  AfterUntrusted after_untrusted;
  std::string narrowed_by;  // What narrowed the run: `by` of Narrow(). Empty if nothing did.
};

}  // namespace policy
