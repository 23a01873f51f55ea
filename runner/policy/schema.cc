// SPDX-License-Identifier: Apache-2.0
#include "policy/schema.h"

#include <array>

namespace policy {
namespace {

using enum Section;
constexpr KeyState kIgnored = KeyState::kIgnored;
constexpr KeyState kNotEnforced = KeyState::kNotEnforced;

constexpr auto kKeys = std::to_array<KeySpec>({
    {kShortForm, "endpoints", "list of text", "none",
     "Endpoints as `host:port[:access[:protocol[:enforcement[:options]]]]`, for the agent's own "
     "executables and what they start."},
    {kShortForm, "defaults", "`agentic-ci`, `minimal` or `none`", "`agentic-ci`",
     "Which endpoints are open beside those listed. `minimal` is the agent's model endpoint, and "
     "the forge for git, read only."},

    {kDocument, "version", "number", "required", "Must be 1."},
    {kDocument, "filesystem_policy", "mapping", "the restrictive default",
     "Which paths the sandbox may read and write."},
    {kDocument, "landlock", "mapping", "`best_effort`", "How strictly Landlock is asked for."},
    {kDocument, "process", "mapping", "none", "The user the agent runs as."},
    {kDocument, "network_policies", "mapping", "none",
     "Who may connect where. The key names the policy; without any, nothing may connect."},
    {kDocument, "network_middlewares", "mapping", "none", "Body rewriting.", kNotEnforced},

    {kFilesystem, "include_workdir", "boolean", "`false`",
     "Whether the workspace may be written. `true` when the whole section is absent."},
    {kFilesystem, "read_only", "list of paths", "none", "Paths that may be read."},
    {kFilesystem, "read_write", "list of paths", "none", "Paths that may be read and written."},

    {kLandlock, "compatibility", "`best_effort` or `hard_requirement`", "`best_effort`",
     "With `hard_requirement` a run is refused where a listed path cannot be enforced."},

    {kProcess, "run_as_user", "text", "the image's",
     "`sandbox`, or a number from 1 to 4294967294."},
    {kProcess, "run_as_group", "text", "the image's",
     "`sandbox`, or a number from 1 to 4294967294."},

    {kNetworkPolicy, "name", "text", "the key", "Shown in records and refusals."},
    {kNetworkPolicy, "endpoints", "list of endpoints", "none", "Where connections may go."},
    {kNetworkPolicy, "binaries", "list of binaries", "none",
     "Which programs may connect: the executable itself or any of its ancestors. None listed means "
     "no program at all."},

    {kBinary, "path", "text", "required",
     "An absolute path, or a pattern when it contains `*`: `/usr/bin/*`, `**/node`, `/**`."},
    {kBinary, "harness", "boolean", "`false`", "Deprecated in OpenShell.", kIgnored},

    {kEndpoint, "host", "text", "empty",
     "A name, an address, or a pattern when it contains `*`: `*` is one label, a leading `**` is "
     "one "
     "or more. May be absent when `allowed_ips` is given."},
    {kEndpoint, "port", "number", "none", "1 to 65535."},
    {kEndpoint, "ports", "list of numbers", "none", "Several ports; excludes `port`."},
    {kEndpoint, "path", "text", "every path",
     "Selects the requests this endpoint speaks for: a pattern that starts with `/`, or `**`."},
    {kEndpoint, "protocol", "`rest` or `tcp`", "the connection alone",
     "`rest`: HTTP requests are judged by `rules` or `access`. `tcp`: raw connections, also for "
     "programs that know no proxy."},
    {kEndpoint, "tls", "`skip`", "inspected",
     "`skip`: TLS is not terminated, so no request can be judged."},
    {kEndpoint, "enforcement", "`enforce` or `audit`", "`enforce`",
     "`audit`: requests that the rules refuse pass and are recorded."},
    {kEndpoint, "access", "`read-only`, `read-write` or `full`", "none",
     "A preset of rules: GET, HEAD, OPTIONS; those and POST, PUT, PATCH; or everything. Excludes "
     "`rules`."},
    {kEndpoint, "rules", "list of rules", "none", "Requests that may pass."},
    {kEndpoint, "deny_rules", "list of matches", "none",
     "Requests that never pass, whatever allows them."},
    {kEndpoint, "allowed_ips", "list of addresses or CIDR", "none",
     "The only addresses the host may resolve to; opens private ones."},
    {kEndpoint, "allow_encoded_slash", "boolean", "`false`",
     "Keep `%2F` in paths instead of refusing the request."},
    {kEndpoint, "websocket_credential_rewrite", "boolean", "`false`", "WebSocket.", kNotEnforced},
    {kEndpoint, "request_body_credential_rewrite", "boolean", "`false`", "Request bodies.",
     kNotEnforced},
    {kEndpoint, "allow_uninspected_credentials", "boolean", "`false`", "Credentials.",
     kNotEnforced},
    {kEndpoint, "persisted_queries", "text", "`deny`", "GraphQL.", kNotEnforced},
    {kEndpoint, "graphql_persisted_queries", "mapping", "none", "GraphQL.", kNotEnforced},
    {kEndpoint, "graphql_max_body_bytes", "number", "65536", "GraphQL.", kNotEnforced},
    {kEndpoint, "json_rpc", "mapping", "none", "JSON-RPC.", kNotEnforced},
    {kEndpoint, "mcp", "mapping", "none", "MCP.", kNotEnforced},
    {kEndpoint, "credential_signing", "text", "none", "Request signing.", kNotEnforced},
    {kEndpoint, "signing_service", "text", "none", "Request signing.", kNotEnforced},
    {kEndpoint, "signing_region", "text", "none", "Request signing.", kNotEnforced},
    {kEndpoint, "credential_binding", "mapping", "none", "Credentials.", kNotEnforced},

    {kRule, "allow", "match", "required", "What the rule lets pass."},

    {kMatch, "method", "text", "required",
     "The method, in any case; `*` is every one. GET lets HEAD pass too."},
    {kMatch, "path", "text", "required",
     "A pattern for the canonical path: `*` stays within one segment, `**` crosses; a lone `**` is "
     "every path."},
    {kMatch, "query", "mapping", "none",
     "Per key a pattern, or `{any: [...]}`. To allow, every value of the key must match; to deny, "
     "one is enough."},
    {kMatch, "command", "text", "none", "SQL.", kNotEnforced},
    {kMatch, "operation_type", "text", "none", "GraphQL.", kNotEnforced},
    {kMatch, "operation_name", "text", "none", "GraphQL.", kNotEnforced},
    {kMatch, "fields", "list of text", "none", "GraphQL.", kNotEnforced},
    {kMatch, "tool", "text", "none", "MCP.", kNotEnforced},
    {kMatch, "params", "mapping", "none", "MCP.", kNotEnforced},

    {kQuery, "any", "list of patterns", "none", "A value must match one of them."},
    {kQuery, "glob", "text", "none", "One pattern; the same as writing it directly."},
});

static_assert(
    [] {
      for (const KeySpec& key : kKeys) {
        if (!key.doc.ends_with('.')) return false;
      }
      return true;
    }(),
    "a key's doc is a sentence");

std::string_view SectionTitle(Section section) {
  switch (section) {
    case kShortForm:
      return "The short form";
    case kDocument:
      return "The full form";
    case kFilesystem:
      return "`filesystem_policy`";
    case kLandlock:
      return "`landlock`";
    case kProcess:
      return "`process`";
    case kNetworkPolicy:
      return "One entry of `network_policies`";
    case kBinary:
      return "One entry of `binaries`";
    case kEndpoint:
      return "One entry of `endpoints`";
    case kRule:
      return "One entry of `rules`";
    case kMatch:
      return "`allow`, and one entry of `deny_rules`";
    case kQuery:
      return "One value under `query`";
  }
  return "";
}

void RenderSection(Section section, std::string* out) {
  *out += "\n## ";
  *out += SectionTitle(section);
  *out += "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
  std::string refused;
  for (const KeySpec& key : kKeys) {
    if (key.section != section) continue;
    if (key.state == KeyState::kNotEnforced) {
      refused += refused.empty() ? "`" : ", `";
      refused += std::string(key.name) + "`";
      continue;
    }
    *out += "| `" + std::string(key.name) + "` | " + std::string(key.type) + " | " +
            std::string(key.fallback) + " | " + std::string(key.doc);
    *out += key.state == KeyState::kIgnored ? " Has no effect. |\n" : " |\n";
  }
  if (!refused.empty()) {
    *out += "\nOpenShell's, refused here because this version does not enforce them: " + refused +
            ".\n";
  }
}

}  // namespace

std::span<const KeySpec> PolicyKeys() { return kKeys; }

const KeySpec* FindKey(Section section, std::string_view name) {
  for (const KeySpec& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string_view SectionName(Section section) {
  switch (section) {
    case kShortForm:
    case kDocument:
      return "a policy";
    case kFilesystem:
      return "filesystem_policy";
    case kLandlock:
      return "landlock";
    case kProcess:
      return "process";
    case kNetworkPolicy:
      return "a network policy";
    case kBinary:
      return "a binary";
    case kEndpoint:
      return "an endpoint";
    case kRule:
      return "a rule";
    case kMatch:
      return "a rule's match";
    case kQuery:
      return "a query matcher";
  }
  return "";
}

std::string RenderPolicyReference() {
  std::string out =
      "# The policy file\n\n"
      "`.agentic-ci/openshell-policy.yml` has one of two forms. A file with `endpoints:` is the "
      "short form; a\nfile with `version:` is OpenShell's own schema. A file with both is refused, "
      "and so is any key that is not\nlisted here, at any depth.\n";
  for (Section section : {kShortForm, kDocument, kFilesystem, kLandlock, kProcess, kNetworkPolicy,
                          kBinary, kEndpoint, kRule, kMatch, kQuery}) {
    RenderSection(section, &out);
  }
  out +=
      "\n## Limits\n\nA file has at most 262144 bytes, `filesystem_policy` at most 256 paths, a "
      "path "
      "at most 4096 bytes.\n";
  return out;
}

}  // namespace policy
