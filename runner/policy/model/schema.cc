// SPDX-License-Identifier: Apache-2.0
#include "policy/model/schema.h"

#include "policy/model/hosted_tools.h"

namespace policy {
namespace {

using enum Section;

struct SectionText {
  Section section;
  std::string_view id;
  std::string_view name;   // The name in messages.
  std::string_view title;  // The title in the reference.
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
    case Shape::kHosted:
      return "`none`, or list";
    case Shape::kUntrusted:
      return "`none`, or mapping";
  }
  return "";
}

void RenderSection(Section section, std::string* out) {
  *out += "\n## " + std::string(TextOf(section).title) +
          "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : PolicyKeys()) {
    if (key.section != section) continue;
    *out += "| " + Code(key.name) + " | " + RenderShape(key) + " | " + std::string(key.fallback) +
            " | " + std::string(key.doc) + " |\n";
  }
}

// The section about `hosted_tools`, with the kinds of its table.
std::string RenderHostedReference() {
  std::string out =
      "\n## Tools of a model's provider\n\nA model can search, fetch, run code and call MCP "
      "servers on its provider's side, where the gateway sees nothing of it.\nThe gateway "
      "therefore reads each request to a model's API (Anthropic Messages, with batches and token "
      "counts; OpenAI\nChat Completions and Responses; Gemini; Bedrock) at the hosts of the "
      "run's model and of the providers' public APIs. A\nrequest that asks for such a tool is "
      "refused unless `hosted_tools` allows the kind. A policy in OpenShell's form has\nno such "
      "key; `hosted_tools` in `.agentic-ci/config.yml` is for it, and for a short form that does "
      "not say. A file with\n`hosted_tools` alone has `defaults: minimal`.\n\n```yaml\n"
      "hosted_tools:\n  - web_search: {domains: [docs.example.com]}\n  - image_generation\n```"
      "\n\n| kind | the provider | `domains` |\n|---|---|---|\n";
  for (const HostedKind& kind : kHostedKinds) {
    out += "| " + Code(kind.name) + " | " + std::string(kind.doc) + " | " +
           (kind.takes_domains ? "yes" : "no") + " |\n";
  }
  return out +
         "\n`domains` includes what is below each. It is compared with the restriction in the "
         "request itself: `allowed_domains` of\nAnthropic's tools, `filters.allowed_domains` of "
         "OpenAI's `web_search`, the `network_policy` of a container, the URL of\nan MCP server "
         "or a document. A request that has no such restriction is refused; Gemini's searches "
         "have none. A type of\nan unknown kind is refused under its name, and `type=NAME` "
         "allows it. Tools that run in the sandbox (functions,\n`computer`, `bash`, "
         "`text_editor`, `memory`, `local_shell`, `apply_patch`) pass. A request that cannot be "
         "read is\n`unread`. A body of more than 32 MiB is refused by every policy.\n";
}

// The section about MCP's header fields.
std::string RenderMcpReference() {
  return R"(
## Revisions of MCP

Requests of 2026-07-28 say in header fields what is in their body, and routers in front of a server go by these. The
gateway judges the body. A request whose `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` or `Mcp-Param-NAME` says
something else, is there twice or is missing where the protocol needs it, is refused with the error -32020, under
`enforcement: audit` too. Which arguments a tool mirrors only its server knows: `Mcp-Param-NAME` has to be the value of
the argument of that name, or else of any, and one that is left out is not noticed. Older revisions have no such fields.

Clients of 2026-07-28 begin with `server/discover`, older ones with `initialize`. A policy that names methods allows a
client by the one that it begins with. Where only `initialize` is allowed, `server/discover` is refused with -32022 and
the older revisions, so that a client of both takes one of those.
)";
}

// The section about `after_untrusted`.
std::string RenderUntrustedReference() {
  return R"(
## After a stranger's text

The moment that matters is when a stranger's text enters the model's context. From then on, until the run ends,
`after_untrusted` closes what it names. It never opens anything, and without it nothing is looked at.

```yaml
after_untrusted:
  closes: [writes, hosted_tools]
  stays: ["api.example.com:443"]
  trusts: [packages.example.com]
```

| key | meaning |
|---|---|
| `closes` | `writes`: what `rest` and `graphql` endpoints would write (`git fetch` reads), and every endpoint of another kind, as those of MCP. `credentials`: every host that a credential is bound to, but the model's. `hosted_tools`, or a kind of them. `all`. Otherwise a host, with or without a port, or a pattern of hosts. |
| `stays` | Hosts and kinds of hosted tools that stay as they are. The run's model always stays. |
| `trusts` | Hosts whose answers do not count as a stranger's. |

A stranger's texts are:

- the title, the text and the comment of the event that started the run, and the lines that its pull request adds, once
  a request to the run's model has a piece of one. A piece is 47 letters in a row, or a whole text of 12 to 46; blanks,
  digits, punctuation, case, line numbers and JSON's escapes do not count. A request to the model that is compressed or
  a WebSocket counts as one that has a piece, and so does every request where the commits to compare are not there, or
  differ by more than 4 MiB;
- each answer of a server that is neither the model's nor trusted (a page, a result of an MCP server, a package), and
  each connection to one that is not inspected: before the first byte of it reaches the sandbox.

Requests that are under way to what has closed are cut off. A policy that is loaded later is narrowed in the same way.
On `--backend openshell`, which cannot narrow a run as it goes, the policy is narrowed from the beginning.
The record has a finding `untrusted.closed` with the text and the request, the page shows it, and every refusal after it
names it. Where an endpoint is a pattern, it closes if any host below it would, and what stays is kept by name.
)";
}

}  // namespace

std::string_view SectionName(Section section) { return TextOf(section).name; }

std::string_view SectionId(Section section) { return TextOf(section).id; }

std::string RenderPolicyReference() {
  std::string out =
      "# The policy file\n\n`.agentic-ci/openshell-policy.yml` has one of two forms. A file with "
      "`endpoints:` is the short form; a\nfile with `version:` is OpenShell's own schema. A file "
      "with both is refused, and so is any key that is not\nlisted here, at any depth. The same as "
      "a JSON Schema, for editors: [policy.schema.json](schemas/policy.schema.json),\nor "
      "`agentic-ci policy schema`. `agentic-ci policy check` also checks what a schema cannot "
      "express.\n\nA key without a value (`tool: \"\"`, `rules: []`, `allowed_ips:`) is refused "
      "wherever more would be allowed without\nthe key, and so is an empty file. `endpoints: []` "
      "alone opens nothing, not even the defaults.\n\nThe addresses that a name resolves to are "
      "checked too. A `host` that is written out may resolve to a private address, as\nin "
      "OpenShell. A host that is matched only by a pattern may not, unless `allowed_ips` permits "
      "it. No policy can allow\nloopback, link-local or cloud metadata addresses (169.254.169.254, "
      "168.63.129.16, 192.0.0.192,\n100.100.100.200 and their IPv6 counterparts). No name leads to "
      "an "
      "address of the machine that runs\nthe gateway, private or public, unless `allowed_ips` "
      "contains "
      "that very address and not only a range\naround it; `host` may be the address itself. "
      "Services of "
      "the machine have `host.openshell.internal`,\nwhich is its loopback. Ports of cluster "
      "control planes (2379, 2380, 6443, 10250, 10255) are\nclosed under `allowed_ips` and for "
      "hosts that are written out.\n";
  for (Section section : PolicySections()) RenderSection(section, &out);
  out += RenderMcpReference();
  out += RenderHostedReference();
  out += RenderUntrustedReference();
  out +=
      "\n## Paths of requests\n\nA pattern is compared literally: case and a trailing `/` are "
      "significant. Many servers treat `/user/keys/`, or\n`/User/Keys`, as `/user/keys`, and a "
      "deny "
      "rule for `/user/keys` matches neither; nor does `/user/keys/**` match\n`/user/keys`. Deny "
      "both:\n\n```yaml\ndeny_rules:\n  - {method: \"*\", path: /user/keys}\n  - {method: "
      "\"*\", path: /user/keys/**}\n```\n\nFor a server that ignores case, write "
      "`/[uU]ser/...`, or, better, allow what is needed instead of denying the rest: a\npath "
      "in another case is then refused.\n\nA WebSocket opens only where the endpoint's `protocol` "
      "is `websocket`, as in OpenShell since 0.1.8, or where no endpoint\njudges requests. Its "
      "messages are judged; a binary message, which is not read, passes only where `rules` or "
      "`access` let\nany text message pass, and never under rules over operations. With `rest`, "
      "`graphql`, `json-rpc` and `mcp`, none opens,\nnot even under `enforcement: audit`: a path "
      "that a WebSocket is to open at needs an endpoint of its own, with `path` and\n`protocol: "
      "websocket`. Clients that ask a model over HTTP when it has no WebSocket get 426 and do so; "
      "others get 403.\n\n## Several endpoints for one "
      "path\n\nWhere several endpoints select a path, a request passes if a rule of any "
      "allows it and no deny rule of any forbids it.\nThe one with the narrowest `path` "
      "decides the protocol. An endpoint for `graphql` refuses what its own rules do "
      "not\nallow; one for `json-rpc` or `mcp` does not, as in OpenShell: a wider `rest` "
      "endpoint that allows POST there lets every\ncall pass, and `agentic-ci policy check` "
      "warns "
      "of it.\n"
      "\n## What else a run exposes\n\nAll of the following is exposed read-only, and `run "
      "--plan-only` lists it:\n\n- `/usr`, `/lib`, `/etc`, `/app` and `/var/log`, as OpenShell "
      "adds them to every policy;\n- the program that the run starts, with its installation: the "
      "targets of its symbolic links, its `node_modules`, the\n  interpreter that a script names, "
      "and the `lib`, `lib64`, `libexec`, `include` and `share` next to its `bin`;\n- each "
      "directory on the caller's `PATH`, with the same directories next to it and the targets of "
      "its symbolic links.\n  Virtual environments, pyenv and similar tools, conda, Go and Java "
      "are exposed as a whole, as is `RUSTUP_HOME` for\n  rustup. The agent's `PATH` contains the "
      "exposed part of the caller's.\n\nThe following are left out of `PATH`, and listed by "
      "`--plan-only`: relative directories; home directories, ancestors\nof a home directory or of "
      "the checkout, and directories directly below `/`; directories below `/tmp` and the "
      "sandbox's\nother private directories; known locations of credentials; world-writable "
      "directories, except in the CI's tool cache\n(`RUNNER_TOOL_CACHE`, `/opt/hostedtoolcache`); "
      "and anything reached through a symbolic link in the checkout. Known\ncredential files in "
      "exposed directories are masked. In an image, all of this refers to the image's files and "
      "`PATH`.\n\nSockets and named pipes in an exposed directory are visible, but nothing answers "
      "on them: services of the host cannot be\nreached through the file system.\n\n## Limits\n\nA "
      "file may have 262144 bytes, `filesystem_policy` 256 paths, and a path 4096 bytes. There may "
      "be 2000 endpoints,\nand 10 middlewares with 32 host patterns each.\n";
  return out;
}

}  // namespace policy
