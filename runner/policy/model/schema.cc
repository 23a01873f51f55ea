// SPDX-License-Identifier: Apache-2.0
#include "policy/model/schema.h"

namespace policy {
namespace {

using enum Section;

struct SectionText {
  Section section;
  std::string_view id;
  std::string_view name;   // In messages.
  std::string_view title;  // In the reference.
};

constexpr SectionText kSectionTexts[] = {
    {kShortForm, "short_form", "a policy", "The short form"},
    {kDocument, "document", "a policy", "The full form"},
    {kFilesystem, "filesystem_policy", "filesystem_policy", "`filesystem_policy`"},
    {kLandlock, "landlock", "landlock", "`landlock`"},
    {kProcess, "process", "process", "`process`"},
    {kNetworkPolicy, "network_policy", "a network policy", "One entry of `network_policies`"},
    {kBinary, "binary", "a binary", "One entry of `binaries`"},
    {kEndpoint, "endpoint", "an endpoint", "One entry of `endpoints`"},
    {kRule, "rule", "a rule", "One entry of `rules`"},
    {kMatch, "match", "a rule's match", "`allow`, and one entry of `deny_rules`"},
    {kMatcher, "matcher", "a matcher", "One value under `query`, and `tool`, when it is a mapping"},
    {kParams, "params", "params", "`params`"},
    {kPersistedQuery, "persisted_query", "a persisted query",
     "One entry of `graphql_persisted_queries`"},
    {kJsonRpc, "json_rpc", "json_rpc", "`json_rpc`"},
    {kMcp, "mcp", "mcp", "`mcp`"},
    {kCredentialBinding, "credential_binding", "credential_binding", "`credential_binding`"},
    {kMiddleware, "middleware", "a middleware", "One entry of `network_middlewares`"},
    {kMiddlewareConfig, "middleware_config", "a middleware's config", "`config` of a middleware"},
    {kMiddlewareEndpoints, "middleware_endpoints", "a middleware's endpoints",
     "`endpoints` of a middleware"},
};

const SectionText& TextOf(Section section) {
  for (const SectionText& text : kSectionTexts) {
    if (text.section == section) return text;
  }
  return kSectionTexts[0];
}

std::string Code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string RenderNumber(const KeySpec& key, std::string_view noun) {
  if (key.least == key.most) return Code(std::to_string(key.least));
  if (key.least < 0) return std::string(noun);
  return std::string(noun) + ", " + std::to_string(key.least) + " to " + std::to_string(key.most);
}

std::string RenderChoice(const KeySpec& key) {
  std::string text;
  for (size_t i = 0; i < key.values.size(); ++i) {
    if (i > 0) text += i + 1 == key.values.size() ? " or " : ", ";
    text += Code(key.values[i]);
  }
  return text;
}

std::string RenderShape(const KeySpec& key) {
  switch (key.shape) {
    case Shape::kText:
      return "text";
    case Shape::kBoolean:
      return "boolean";
    case Shape::kNumber:
      return RenderNumber(key, "number");
    case Shape::kNumbers:
      return RenderNumber(key, "list of numbers");
    case Shape::kChoice:
      return RenderChoice(key);
    case Shape::kTexts:
      return "list of text";
    case Shape::kMapping:
      return "mapping";
    case Shape::kMappings:
      return "list of mappings";
    case Shape::kMap:
      return "mapping of names to mappings";
    case Shape::kPattern:
      return "pattern, or mapping";
    case Shape::kPatterns:
      return "mapping of names to patterns";
  }
  return "";
}

void RenderSection(Section section, std::string* out) {
  *out += "\n## " + std::string(TextOf(section).title) +
          "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : PolicyKeys()) {
    if (key.section != section) continue;
    *out += "| " + Code(key.name) + " | " + RenderShape(key) + " | " + std::string(key.fallback) +
            " | " + std::string(key.doc);
    *out += key.ignored ? " Has no effect. |\n" : " |\n";
  }
}

}  // namespace

std::string_view SectionName(Section section) { return TextOf(section).name; }

std::string_view SectionId(Section section) { return TextOf(section).id; }

std::string RenderPolicyReference() {
  std::string out =
      "# The policy file\n\n"
      "`.agentic-ci/openshell-policy.yml` has one of two forms. A file with `endpoints:` is the "
      "short form; a\nfile with `version:` is OpenShell's own schema. A file with both is refused, "
      "and so is any key that is not\nlisted here, at any depth. The same as a JSON Schema, for "
      "editors: [policy.schema.json](schemas/policy.schema.json),\nor `agentic-ci policy schema`. "
      "What a schema cannot say, `agentic-ci policy check` does.\n\n"
      "A key with nothing behind it (`tool: \"\"`, `rules: []`, `allowed_ips:`) is refused "
      "wherever more would pass without\nthe key, and so is an empty file. `endpoints: []` alone "
      "opens nothing, not even the defaults.\n\n"
      "What a name resolves to is judged too. A `host` that is written out may resolve to a "
      "private "
      "address, as in\nOpenShell: the policy named that host. One that only a pattern covers may "
      "not; it takes `allowed_ips`. No policy opens\nloopback, link-local addresses or a cloud's "
      "metadata addresses (169.254.169.254, 168.63.129.16, 192.0.0.192,\n100.100.100.200 and their "
      "counterparts in IPv6). Ports of cluster control planes (2379, 2380, 6443, 10250, 10255) "
      "are\nclosed under `allowed_ips` and for hosts that are written out.\n";
  for (Section section : PolicySections()) RenderSection(section, &out);
  out +=
      "\n## Paths of requests\n\n"
      "A pattern is matched as it is written: case counts, and so does a `/` at the end. Many "
      "servers "
      "take `/user/keys/`, or\n`/User/Keys`, for `/user/keys`, and a deny rule for `/user/keys` "
      "refuses neither, nor does `/user/keys/**` refuse\n`/user/keys`. Deny both:\n\n"
      "```yaml\n"
      "deny_rules:\n"
      "  - {method: \"*\", path: /user/keys}\n"
      "  - {method: \"*\", path: /user/keys/**}\n"
      "```\n\n"
      "Where a server is known not to regard case, write `/[uU]ser/...`, or, better, allow what is "
      "needed in place of denying the\nrest: a path in another case is then refused.\n\n"
      "With `protocol: rest` an allowed GET that asks for a WebSocket opens one, as in OpenShell, "
      "under `access: read-only` too.\nIts messages are not judged, and so may write. With "
      "`protocol: websocket` they are; where no path should open one, allow\nonly the paths that "
      "do not.\n"
      "\n## What else a run shows\n\n"
      "All of this is read-only, and `run --plan-only` lists it:\n\n"
      "- `/usr`, `/lib`, `/etc`, `/app` and `/var/log`, as OpenShell adds them to every policy;\n"
      "- the started program with its installation: what its links lead to, its `node_modules`, "
      "the "
      "interpreter that a\n  script names, and the `lib`, `lib64`, `libexec`, `include` and "
      "`share` "
      "beside its `bin`;\n"
      "- each directory on the caller's `PATH`, with the same beside it and with what its links "
      "lead "
      "to. Virtual\n  environments, pyenv and its like, conda, Go and Java are shown as a whole, "
      "and "
      "`RUSTUP_HOME` where rustup is.\n  The agent's `PATH` is the caller's, as far as it is "
      "shown.\n\n"
      "Left out of `PATH`, and named by `--plan-only`, are: relative directories; homes, "
      "directories "
      "above a home or the\ncheckout, and those directly below `/`; directories below `/tmp` and "
      "the "
      "sandbox's other places of its own; known\nplaces of credentials; directories that everybody "
      "may write to, unless they lie in the CI's tool cache\n(`RUNNER_TOOL_CACHE`, "
      "`/opt/hostedtoolcache`); and whatever is reached through a link in the checkout. Known\n"
      "credential files in what is shown are masked. In an image all this means the image's own "
      "files and its own `PATH`.\n\n"
      "Sockets and named pipes in a shown directory can be seen, and nothing answers there: a "
      "service "
      "of the host is not\nreached through the file system.\n"
      "\n## Limits\n\nA file has at most 262144 bytes, `filesystem_policy` at most 256 paths, a "
      "path at most 4096 bytes. There are\nat most 2000 endpoints, and 10 middlewares with 32 "
      "patterns of hosts each.\n";
  return out;
}

}  // namespace policy
