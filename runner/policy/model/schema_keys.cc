// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "policy/model/endpoint_keys.h"
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

constexpr auto kOtherKeys = std::to_array<KeySpec>({
    Patterned(
        kShortForm, "endpoints", kTexts, kEndpointPattern, "none",
        "Endpoints as `host:port[:access[:protocol[:enforcement[:options]]]]`, for the agent: the "
        "command that a run starts, and everything it executes or starts. Options are "
        "`allowed-ip=CIDR`, `allow-uninspected-credentials`, `websocket-credential-rewrite` and "
        "`request-body-credential-rewrite`, separated by commas."),
    Choice(kShortForm, "defaults", kDefaults, "`agentic-ci`",
           "Which endpoints are open in addition to those listed; `none` if `endpoints` is an "
           "empty list, and `minimal` if there is no `endpoints`. `minimal` opens the agent's "
           "model endpoint, and the forge for read-only "
           "git access."),
    {kShortForm, "hosted_tools", kHosted, "`none`",
     "The tools of a model's provider that requests to models may ask for: "
     "`[web_search: {domains: [docs.example.com]}, image_generation]`. See below."},
    {kShortForm, "after_untrusted", kUntrusted, "`none`",
     "What closes for good once a stranger's text may have reached the model: "
     "`{closes: [writes, hosted_tools]}`. See below."},
    Number(kDocument, "version", 1, 1, "required", "Must be 1."),
    Nested(kDocument, "filesystem_policy", kMapping, kFilesystem, "the restrictive default",
           "Which paths the sandbox may read and write."),
    Nested(kDocument, "landlock", kMapping, kLandlock, "`best_effort`",
           "How strictly Landlock is required."),
    Nested(kDocument, "process", kMapping, kProcess, "none", "The user the agent runs as."),
    Nested(kDocument, "network_policies", kMap, kNetworkPolicy, "none",
           "Which programs may connect to which endpoints. The key names the policy and must not "
           "start with `_provider_`. Without any policy, nothing may connect."),
    Nested(kDocument, "network_middlewares", kMap, kMiddleware, "none",
           "How outgoing bodies are processed. At most 10."),
    {kFilesystem, "include_workdir", kBoolean, "`false`",
     "Whether the agent may read and write the checkout; if not, it sees an empty directory. "
     "`true` if the whole section is absent."},
    Patterned(kFilesystem, "read_only", kTexts, "^\\s*/", "none",
              "Absolute paths that may be read. `/`: everything except home directories and the "
              "sandbox's private directories."),
    Patterned(kFilesystem, "read_write", kTexts, "^\\s*/", "none",
              "Absolute paths that may be read and written."),
    Choice(kLandlock, "compatibility", kCompatibility, "`best_effort`",
           "With `hard_requirement`, the run is refused if access to a listed path cannot be "
           "enforced."),
    Patterned(kProcess, "run_as_user", kText, "^\\s*(sandbox|[1-9][0-9]*)?\\s*$", "the image's",
              "`sandbox`, or a number from 1 to 4294967294."),
    {kProcess, "run_as_group", kText, "the image's",
     "`sandbox`, or a number from 1 to 4294967294."},
    {kNetworkPolicy, "name", kText, "the key", "Shown in records and refusals."},
    Nested(kNetworkPolicy, "endpoints", kMappings, kEndpoint, "none", "Where connections may go."),
    Nested(kNetworkPolicy, "binaries", kMappings, kBinary, "none",
           "Which programs may connect: the executable itself or any of its ancestors. If none are "
           "listed, no program may connect."),
    {kBinary, "path", kText, "required",
     "An absolute path, or a pattern when it contains `*`: `/usr/bin/*`, `**/node`, `/**`."},
    {kEndpoint, "host", kText, "empty",
     "A name, an address, or a pattern when it contains `*`: `*` is one label, a leading `**` is "
     "one or more. May be absent when `allowed_ips` is given: "
     "each name that the agent connects to is then looked up, so name servers see it."},
    Number(kEndpoint, "port", 0, 65535, "none", "The port."),
    Number(kEndpoint, "ports", 1, 65535, "none", "Several ports. Mutually exclusive with `port`.",
           kNumbers),
    {kEndpoint, "path", kText, "every path",
     "Selects the requests that this endpoint applies to: a pattern that starts with `/`, or "
     "`**`."},
    Choice(kEndpoint, "protocol", kProtocols, "the connection only",
           "What is judged. `rest`: HTTP requests, by `rules` or `access`. `websocket`: handshakes "
           "and text messages. `graphql`: operations. `json-rpc` and `mcp`: calls, by `rules`. "
           "`sql`: can only be recorded, not enforced. `tcp`: raw connections, also from programs "
           "without proxy support.",
           true),
    Choice(kEndpoint, "tls", kTls, "inspected",
           "`skip`: TLS is not terminated, so no request can be judged. The other two are "
           "deprecated and mean the default."),
    Choice(kEndpoint, "enforcement", kEnforcement, "`enforce`",
           "`audit`: requests that the rules deny are allowed and recorded. Required for `sql`."),
    Choice(kEndpoint, "access", kAccess, "none",
           "A preset of rules. For requests: GET, HEAD, OPTIONS; those and POST, PUT, PATCH; or "
           "everything. For `websocket`: handshakes; those and text messages; or everything. For "
           "`graphql`: queries; those and mutations; or everything. Mutually exclusive with "
           "`rules`; not available for `json-rpc` and `mcp`."),
    Nested(kEndpoint, "rules", kMappings, kRule, "none", "Requests that are allowed."),
    Nested(kEndpoint, "deny_rules", kMappings, kMatch, "none",
           "Requests that are always denied, even if another rule allows them."),
    {kEndpoint, "allowed_ips", kTexts, "none",
     "The only addresses that the host may resolve to, as IP addresses or CIDR ranges; may include "
     "private ones."},
    Choice(kEndpoint, "persisted_queries", kPersisted, "`deny`",
           "`graphql` and `websocket`: whether a query may be sent by its registered hash or id."),
    Nested(kEndpoint, "graphql_persisted_queries", kMap, kPersistedQuery, "none",
           "`graphql` and `websocket`: registered queries, keyed by hash or id."),
    Number(kEndpoint, "graphql_max_body_bytes", 1, kUint32Max, "65536",
           "`graphql` and `websocket`: the largest body that is judged; a larger one is refused."),
    Nested(kEndpoint, "json_rpc", kMapping, kJsonRpc, "none",
           "`json-rpc` and `mcp`: how bodies are read."),
    Nested(kEndpoint, "mcp", kMapping, kMcp, "none", "`mcp`: how calls are judged."),
    Choice(kEndpoint, "credential_signing", kSigning, "none",
           "Sign requests with AWS Signature Version 4: with the body's hash (`sigv4:body`), "
           "without (`sigv4:no_body`), or as the service requires (`sigv4`). Mutually exclusive "
           "with `request_body_credential_rewrite`."),
    {kEndpoint, "signing_service", kText, "none",
     "The service's name in signatures, such as `bedrock`. Required with `credential_signing`."},
    {kEndpoint, "signing_region", kText, "from the host's name", "The region in signatures."},
    Nested(kEndpoint, "credential_binding", kMapping, kCredentialBinding, "none",
           "The provider whose credentials are used for this endpoint."),
    Nested(kRule, "allow", kMapping, kMatch, "required", "What the rule allows."),
    {kMatch, "method", kText, "required, except for GraphQL and SQL",
     "`rest`: the method, case-insensitive; `*` matches every method, and GET also allows HEAD. "
     "`websocket`: GET for the handshake, WEBSOCKET_TEXT for a text message. `json-rpc`: the "
     "method of the call, or `*` by itself. `mcp`: the same, with patterns only after `tools/`; "
     "may be absent with `allow_all_known_mcp_methods`."},
    {kMatch, "path", kText, "required for `rest` and `websocket`",
     "A pattern for the canonical path: `*` matches within one segment, `**` across segments; `**` "
     "by itself matches every path. Case and a trailing `/` are significant: see below."},
    Nested(kMatch, "query", kPatterns, kMatcher, "none",
           "For each query key, a pattern or a mapping. An allow rule requires every value of the "
           "key to match; for a deny rule, one is enough."),
    {kMatch, "command", kText, "required for `sql`",
     "`sql`: the command, case-insensitive; `*` matches every command."},
    Choice(kMatch, "operation_type", kOperations, "required for `graphql`",
           "`graphql`, and messages of `websocket`: the operation type; `*` matches every type."),
    {kMatch, "operation_name", kText, "any",
     "`graphql`, and messages of `websocket`: a pattern for the operation's name."},
    {kMatch, "fields", kTexts, "any",
     "`graphql`, and messages of `websocket`: patterns for root fields. An allow rule requires "
     "every field to match; for a deny rule, one is enough."},
    Nested(kMatch, "tool", kPattern, kMatcher, "any",
           "`mcp`: a pattern for the tool name in `tools/call`, or a mapping."),
    Nested(kMatch, "params", kMapping, kParams, "any",
           "`mcp`: an alternative way to write `tool`."),
    {kMatcher, "any", kTexts, "none", "A value must match one of these patterns."},
    {kMatcher, "glob", kText, "none", "One pattern; the same as writing it directly."},
    Nested(kParams, "name", kPattern, kMatcher, "none", "The same as `tool`."),
    Choice(kPersistedQuery, "operation_type", kOperations, "required",
           "The operation type of the query."),
    {kPersistedQuery, "operation_name", kText, "none", "The operation's name."},
    {kPersistedQuery, "fields", kTexts, "none", "The root fields it asks for."},
    Number(kJsonRpc, "max_body_bytes", 1, kUint32Max, "65536",
           "The largest body that is judged; a larger one is refused."),
    Number(kMcp, "max_body_bytes", 1, kUint32Max, "65536",
           "The largest body that is judged; a larger one is refused."),
    {kMcp, "strict_tool_names", kBoolean, "`true`",
     "Refuse tool names other than 1 to 128 letters, digits, `_`, `.` and `-`. Required for "
     "patterns of tool names."},
    {kMcp, "allow_all_known_mcp_methods", kBoolean, "`false`",
     "Allow every method; if a rule names a tool, `tools/call` is allowed only for the named "
     "tools."},
    {kCredentialBinding, "provider", kText, "required", "The provider's name."},
    {kMiddleware, "name", kText, "the key", "Shown in records."},
    Choice(kMiddleware, "middleware", kMiddlewares, "required",
           "Replaces text that looks like an API key (`sk-...`) with `[REDACTED]` in request "
           "bodies and WebSocket text."),
    Number(kMiddleware, "order", kInt32Min, kInt32Max, "0",
           "The order of the middlewares, lowest first; must be unique."),
    Nested(kMiddleware, "config", kMapping, kMiddlewareConfig, "none",
           "Options of the middleware."),
    Choice(kMiddleware, "on_error", kOnError, "`fail_closed`",
           "Whether a body that cannot be inspected is refused or allowed."),
    Nested(kMiddleware, "endpoints", kMapping, kMiddlewareEndpoints, "required",
           "The hosts it applies to."),
    Choice(kMiddlewareConfig, "mode", kModes, "`redact`", "What is done to a match."),
    {kMiddlewareEndpoints, "include", kTexts, "required",
     "Host patterns, at least one; `*` matches within a label, `**` matches one or more labels."},
    {kMiddlewareEndpoints, "exclude", kTexts, "none",
     "Patterns of excluded hosts. At most 32 patterns in total."},
});

constexpr KeySpec SpecOf(const EndpointKey& key) {
  return {kEndpoint, key.name, kBoolean, "`false`", key.doc};
}

constexpr auto kKeys = [] {
  std::array<KeySpec, kOtherKeys.size() + kEndpointKeys.size()> all{};
  auto* end = std::copy(kOtherKeys.begin(), kOtherKeys.end(), all.begin());
  std::transform(kEndpointKeys.begin(), kEndpointKeys.end(), end, SpecOf);
  return all;
}();

struct KeyName {
  Section section;
  std::string_view name;
};

// The keys that let nothing more pass if nothing is written. A key that is not listed is refused if
// it is empty: `tool: ""` must not be every tool.
constexpr auto kMayBeEmpty = std::to_array<KeyName>({
    {kShortForm, "endpoints"},
    {kDocument, "filesystem_policy"},
    {kDocument, "landlock"},
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
