// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "policy/model/schema.h"

namespace policy {
namespace {

using enum Section;
using enum Shape;
using Values = std::span<const std::string_view>;

constexpr int64_t kUint32Max = std::numeric_limits<uint32_t>::max();
constexpr int64_t kInt32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

// HOST:PORT and up to four more segments; a host may be an address in brackets.
constexpr std::string_view kEndpointPattern = R"(^\s*(\[.*\]|[^:]+)\s*:\s*[0-9]{1,5}\s*(:.*)?$)";

constexpr KeySpec Choice(Section section, std::string_view name, Values values,
                         std::string_view fallback, std::string_view doc, bool any_case = false) {
  return {section, name, kChoice, fallback, doc, values, any_case};
}

constexpr KeySpec Number(Section section, std::string_view name, int64_t least, int64_t most,
                         std::string_view fallback, std::string_view doc, Shape shape = kNumber) {
  return {section, name, shape, fallback, doc, {}, false, least, most};
}

constexpr KeySpec Nested(Section section, std::string_view name, Shape shape, Section inner,
                         std::string_view fallback, std::string_view doc) {
  return {section, name, shape, fallback, doc, {}, false, 0, 0, inner};
}

constexpr KeySpec Patterned(Section section, std::string_view name, Shape shape,
                            std::string_view pattern, std::string_view fallback,
                            std::string_view doc) {
  KeySpec key{section, name, shape, fallback, doc};
  key.pattern = pattern;
  return key;
}

constexpr KeySpec Ignored(Section section, std::string_view name, Shape shape,
                          std::string_view fallback, std::string_view doc) {
  KeySpec key{section, name, shape, fallback, doc};
  key.ignored = true;
  return key;
}

constexpr auto kDefaults = std::to_array<std::string_view>({"agentic-ci", "minimal", "none"});
constexpr auto kCompatibility =
    std::to_array<std::string_view>({"best_effort", "hard_requirement"});
constexpr auto kProtocols = std::to_array<std::string_view>(
    {"tcp", "rest", "websocket", "graphql", "sql", "json-rpc", "mcp"});
constexpr auto kTls = std::to_array<std::string_view>({"skip", "terminate", "passthrough"});
constexpr auto kEnforcement = std::to_array<std::string_view>({"enforce", "audit"});
constexpr auto kAccess = std::to_array<std::string_view>({"read-only", "read-write", "full"});
constexpr auto kPersisted = std::to_array<std::string_view>({"deny", "allow_registered"});
constexpr auto kSigning = std::to_array<std::string_view>({"sigv4", "sigv4:body", "sigv4:no_body"});
constexpr auto kOperations =
    std::to_array<std::string_view>({"query", "mutation", "subscription", "*"});
constexpr auto kMiddlewares = std::to_array<std::string_view>({"openshell/regex"});
constexpr auto kOnError = std::to_array<std::string_view>({"fail_closed", "fail_open"});
constexpr auto kModes = std::to_array<std::string_view>({"redact"});

constexpr auto kKeys = std::to_array<KeySpec>({
    Patterned(
        kShortForm, "endpoints", kTexts, kEndpointPattern, "none",
        "Endpoints as `host:port[:access[:protocol[:enforcement[:options]]]]`, for the agent: "
        "the command that a run starts, whatever it executes, and all that it starts. Options are "
        "`allowed-ip=CIDR`, "
        "`allow-uninspected-credentials`, `websocket-credential-rewrite` and "
        "`request-body-credential-rewrite`, separated by commas."),
    Choice(
        kShortForm, "defaults", kDefaults, "`agentic-ci`",
        "Which endpoints are open beside those listed; `none` when `endpoints` is an empty list. "
        "`minimal` is the agent's model endpoint, "
        "and the forge for git, read only."),
    Number(kDocument, "version", 1, 1, "required", "Must be 1."),
    Nested(kDocument, "filesystem_policy", kMapping, kFilesystem, "the restrictive default",
           "Which paths the sandbox may read and write."),
    Nested(kDocument, "landlock", kMapping, kLandlock, "`best_effort`",
           "How strictly Landlock is asked for."),
    Nested(kDocument, "process", kMapping, kProcess, "none", "The user the agent runs as."),
    Nested(kDocument, "network_policies", kMap, kNetworkPolicy, "none",
           "Who may connect where. The key names the policy and does not start with `_provider_`; "
           "without any, nothing may connect."),
    Nested(kDocument, "network_middlewares", kMap, kMiddleware, "none",
           "What is done to bodies on their way out. At most 10."),
    {kFilesystem, "include_workdir", kBoolean, "`false`",
     "Whether the agent may read and write the checkout; otherwise it is shown an empty directory. "
     "`true` when the whole section is absent."},
    Patterned(kFilesystem, "read_only", kTexts, "^\\s*/", "none",
              "Absolute paths that may be read. `/`: all but homes and the sandbox's own places."),
    Patterned(kFilesystem, "read_write", kTexts, "^\\s*/", "none",
              "Absolute paths that may be read and written."),
    Choice(kLandlock, "compatibility", kCompatibility, "`best_effort`",
           "With `hard_requirement` a run is refused where a listed path cannot be enforced."),
    Patterned(kProcess, "run_as_user", kText, "^\\s*(sandbox|[1-9][0-9]*)?\\s*$", "the image's",
              "`sandbox`, or a number from 1 to 4294967294."),
    {kProcess, "run_as_group", kText, "the image's",
     "`sandbox`, or a number from 1 to 4294967294."},
    {kNetworkPolicy, "name", kText, "the key", "Shown in records and refusals."},
    Nested(kNetworkPolicy, "endpoints", kMappings, kEndpoint, "none", "Where connections may go."),
    Nested(kNetworkPolicy, "binaries", kMappings, kBinary, "none",
           "Which programs may connect: the executable itself or any of its ancestors. None listed "
           "means no program at all."),
    {kBinary, "path", kText, "required",
     "An absolute path, or a pattern when it contains `*`: `/usr/bin/*`, `**/node`, `/**`."},
    Ignored(kBinary, "harness", kBoolean, "`false`", "Deprecated in OpenShell."),
    {kEndpoint, "host", kText, "empty",
     "A name, an address, or a pattern when it contains `*`: `*` is one label, a leading `**` is "
     "one or more. May be absent when `allowed_ips` is given."},
    Number(kEndpoint, "port", 0, 65535, "none", "The port."),
    Number(kEndpoint, "ports", 1, 65535, "none", "Several ports; excludes `port`.", kNumbers),
    {kEndpoint, "path", kText, "every path",
     "Selects the requests this endpoint speaks for: a pattern that starts with `/`, or `**`."},
    Choice(kEndpoint, "protocol", kProtocols, "the connection alone",
           "What is judged. `rest`: HTTP requests, by `rules` or `access`. `websocket`: handshakes "
           "and text messages. `graphql`: operations. `json-rpc` and `mcp`: calls, by `rules`. "
           "`sql`: nothing can be enforced, only recorded. `tcp`: raw connections, also for "
           "programs that know no proxy.",
           true),
    Choice(kEndpoint, "tls", kTls, "inspected",
           "`skip`: TLS is not terminated, so no request can be judged. The other two are "
           "deprecated and mean the default."),
    Choice(kEndpoint, "enforcement", kEnforcement, "`enforce`",
           "`audit`: requests that the rules refuse pass and are recorded. `sql` needs it."),
    Choice(kEndpoint, "access", kAccess, "none",
           "A preset of rules. For requests: GET, HEAD, OPTIONS; those and POST, PUT, PATCH; or "
           "everything. For `websocket`: handshakes; those and text messages; or everything. For "
           "`graphql`: queries; those and mutations; or everything. Excludes `rules`; `json-rpc` "
           "and `mcp` have none."),
    Nested(kEndpoint, "rules", kMappings, kRule, "none", "Requests that may pass."),
    Nested(kEndpoint, "deny_rules", kMappings, kMatch, "none",
           "Requests that never pass, whatever allows them."),
    {kEndpoint, "allowed_ips", kTexts, "none",
     "The only addresses the host may resolve to, as addresses or CIDR; opens private ones."},
    {kEndpoint, "allow_encoded_slash", kBoolean, "`false`",
     "Keep `%2F` in paths instead of refusing the request."},
    {kEndpoint, "websocket_credential_rewrite", kBoolean, "`false`",
     "Replace placeholders of credentials in WebSocket text. Needs `websocket` or `rest`."},
    {kEndpoint, "request_body_credential_rewrite", kBoolean, "`false`",
     "Replace placeholders of credentials in request bodies. Needs `rest`."},
    {kEndpoint, "allow_uninspected_credentials", kBoolean, "`false`",
     "A host that a credential is bound to may be reached without inspection: the credential is "
     "then never put in."},
    Choice(kEndpoint, "persisted_queries", kPersisted, "`deny`",
           "`graphql` and `websocket`: whether a query may be sent by the hash or id it is "
           "registered with."),
    Nested(kEndpoint, "graphql_persisted_queries", kMap, kPersistedQuery, "none",
           "`graphql` and `websocket`: registered queries by their hash or id."),
    Number(kEndpoint, "graphql_max_body_bytes", 1, kUint32Max, "65536",
           "`graphql` and `websocket`: the largest body that is judged; a larger one is refused."),
    Nested(kEndpoint, "json_rpc", kMapping, kJsonRpc, "none",
           "`json-rpc` and `mcp`: how bodies are read."),
    Nested(kEndpoint, "mcp", kMapping, kMcp, "none", "`mcp`: how calls are judged."),
    Choice(kEndpoint, "credential_signing", kSigning, "none",
           "Sign requests with AWS Signature Version 4: with the body's hash (`sigv4:body`), "
           "without (`sigv4:no_body`), or as the service wants it (`sigv4`). Excludes "
           "`request_body_credential_rewrite`."),
    {kEndpoint, "signing_service", kText, "none",
     "The service's name in signatures, such as `bedrock`. Required with `credential_signing`."},
    {kEndpoint, "signing_region", kText, "from the host's name", "The region in signatures."},
    Nested(kEndpoint, "credential_binding", kMapping, kCredentialBinding, "none",
           "Which provider's credentials this endpoint takes."),
    Nested(kRule, "allow", kMapping, kMatch, "required", "What the rule lets pass."),
    {kMatch, "method", kText, "required but for GraphQL and SQL",
     "`rest`: the method, in any case; `*` is every one, and GET lets HEAD pass too. `websocket`: "
     "GET for the handshake, WEBSOCKET_TEXT for a text message. `json-rpc`: the method of the "
     "call, or a lone `*`. `mcp`: likewise, a pattern only behind `tools/`; may be absent with "
     "`allow_all_known_mcp_methods`."},
    {kMatch, "path", kText, "required for `rest` and `websocket`",
     "A pattern for the canonical path: `*` stays within one segment, `**` crosses; a lone `**` is "
     "every path. Case and a `/` at the end count: see below."},
    Nested(kMatch, "query", kPatterns, kMatcher, "none",
           "Per key of the query a pattern, or a mapping. To allow, every value of the key must "
           "match; to deny, one is enough."),
    {kMatch, "command", kText, "required for `sql`",
     "`sql`: the command, in any case; `*` is every one."},
    Choice(kMatch, "operation_type", kOperations, "required for `graphql`",
           "`graphql`, and messages of `websocket`: the kind of operation; `*` is every one."),
    {kMatch, "operation_name", kText, "any",
     "`graphql`, and messages of `websocket`: a pattern for the operation's name."},
    {kMatch, "fields", kTexts, "any",
     "`graphql`, and messages of `websocket`: patterns for root fields. To allow, every field must "
     "match; to deny, one is enough."},
    Nested(kMatch, "tool", kPattern, kMatcher, "any",
           "`mcp`: a pattern for the name of the tool that `tools/call` calls, or a mapping."),
    Nested(kMatch, "params", kMapping, kParams, "any", "`mcp`: another way to write `tool`."),
    {kMatcher, "any", kTexts, "none", "A value must match one of these patterns."},
    {kMatcher, "glob", kText, "none", "One pattern; the same as writing it directly."},
    Nested(kParams, "name", kPattern, kMatcher, "none", "The same as `tool`."),
    Choice(kPersistedQuery, "operation_type", kOperations, "required",
           "The kind of operation the query is."),
    {kPersistedQuery, "operation_name", kText, "none", "The operation's name."},
    {kPersistedQuery, "fields", kTexts, "none", "The root fields it asks for."},
    Number(kJsonRpc, "max_body_bytes", 1, kUint32Max, "65536",
           "The largest body that is judged; a larger one is refused."),
    Number(kMcp, "max_body_bytes", 1, kUint32Max, "65536",
           "The largest body that is judged; a larger one is refused."),
    {kMcp, "strict_tool_names", kBoolean, "`true`",
     "Refuse names of tools that are not up to 128 letters, digits, `_`, `.` and `-`. Patterns of "
     "names need it."},
    {kMcp, "allow_all_known_mcp_methods", kBoolean, "`false`",
     "Let every method pass; where a rule names a tool, `tools/call` passes for the tools named "
     "alone."},
    {kCredentialBinding, "provider", kText, "required", "The provider's name."},
    {kMiddleware, "name", kText, "the key", "Shown in records."},
    Choice(kMiddleware, "middleware", kMiddlewares, "required",
           "Writes `[REDACTED]` over what looks like a key (`sk-...`) in request bodies and "
           "WebSocket text."),
    Number(kMiddleware, "order", kInt32Min, kInt32Max, "0",
           "Which middleware is first; no two are equal."),
    Nested(kMiddleware, "config", kMapping, kMiddlewareConfig, "none",
           "Options of the middleware."),
    Choice(kMiddleware, "on_error", kOnError, "`fail_closed`",
           "What happens to a body that cannot be looked into: refused, or let pass."),
    Nested(kMiddleware, "endpoints", kMapping, kMiddlewareEndpoints, "required",
           "The hosts it works on."),
    Choice(kMiddlewareConfig, "mode", kModes, "`redact`", "What is done to a match."),
    {kMiddlewareEndpoints, "include", kTexts, "required",
     "Patterns of hosts, at least one; `*` is within a label, `**` is one label or more."},
    {kMiddlewareEndpoints, "exclude", kTexts, "none",
     "Patterns of hosts left out. At most 32 patterns together."},
});

struct KeyName {
  Section section;
  std::string_view name;
};

// Where nothing written lets nothing more pass. A key that is not listed is refused when it is
// empty: `tool: ""` must not be every tool.
constexpr auto kMayBeEmpty = std::to_array<KeyName>({
    {kShortForm, "endpoints"},
    {kDocument, "filesystem_policy"},
    {kDocument, "process"},
    {kDocument, "network_policies"},
    {kDocument, "network_middlewares"},
    {kFilesystem, "read_only"},
    {kFilesystem, "read_write"},
    {kProcess, "run_as_user"},
    {kProcess, "run_as_group"},
    {kNetworkPolicy, "name"},
    {kNetworkPolicy, "endpoints"},
    {kNetworkPolicy, "binaries"},
    {kEndpoint, "ports"},
    {kEndpoint, "tls"},
    {kEndpoint, "persisted_queries"},
    {kEndpoint, "graphql_persisted_queries"},
    {kEndpoint, "json_rpc"},
    {kEndpoint, "mcp"},
    {kEndpoint, "credential_signing"},
    {kEndpoint, "signing_service"},
    {kEndpoint, "signing_region"},
    {kRule, "allow"},  // Every method, after `allow_all_known_mcp_methods` alone.
    {kMiddleware, "name"},
    {kMiddleware, "config"},
    {kMiddleware, "on_error"},
    {kMiddlewareConfig, "mode"},
    {kMiddlewareEndpoints, "exclude"},
});

static_assert(
    [] {
      for (const KeyName& name : kMayBeEmpty) {
        bool found = false;
        for (const KeySpec& key : kKeys) {
          found = found || (key.section == name.section && key.name == name.name);
        }
        if (!found) return false;
      }
      return true;
    }(),
    "a key that may be empty is a key");

constexpr auto kSections = std::to_array<Section>(
    {kShortForm, kDocument, kFilesystem, kLandlock, kProcess, kNetworkPolicy, kBinary, kEndpoint,
     kRule, kMatch, kMatcher, kParams, kPersistedQuery, kJsonRpc, kMcp, kCredentialBinding,
     kMiddleware, kMiddlewareConfig, kMiddlewareEndpoints});

static_assert(
    [] {
      for (const KeySpec& key : kKeys) {
        if (!key.doc.ends_with('.')) return false;
      }
      return true;
    }(),
    "the doc of a key is a sentence");

}  // namespace

std::span<const KeySpec> PolicyKeys() { return kKeys; }

bool MayBeEmpty(const KeySpec& key) {
  return std::any_of(kMayBeEmpty.begin(), kMayBeEmpty.end(), [&](const KeyName& name) {
    return name.section == key.section && name.name == key.name;
  });
}

std::span<const Section> PolicySections() { return kSections; }

const KeySpec* FindKey(Section section, std::string_view name) {
  for (const KeySpec& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace policy
