// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include "codec/text/nearest.h"

namespace cli {
namespace {

constexpr OptionSpec kJson = {"json", "", "", "Print the result as one JSON object."};
constexpr VariableSpec kGitHubVariables = {
    "GITHUB_*",
    "What GitHub Actions (or Gitea, or Forgejo) says about the event, the step's "
    "summary and its outputs; looked at only when GITHUB_ACTIONS is `true`."};

constexpr VariableSpec kCiVariable = {
    "CI",
    "When set, or a variable like GITLAB_CI, and GITHUB_ACTIONS is not `true`: a continuous "
    "integration whose events are not read. `policy-ref` must then be given, and a run gets no "
    "secrets. `false` and `0` count as not set."};

constexpr VariableSpec kStoreVariable = {
    "AGENTIC_CI_STORE",
    "Where unpacked layers are kept; without it, `agentic-ci/images` in XDG_CACHE_HOME, or in "
    "`~/.cache`."};
constexpr VariableSpec kRegistryVariable = {
    "DOCKER_AUTH_CONFIG, REGISTRY_AUTH_FILE, DOCKER_CONFIG, GITHUB_TOKEN, CI_*",
    "Credentials for registries, in this order, files under XDG_RUNTIME_DIR and XDG_CONFIG_HOME "
    "too; "
    "each is sent to the registry it is for alone. docs/reference/images.md."};

// Docs longer than a line live here, where they can be read.
constexpr std::string_view kExplainDoc =
    "Say whether a policy allows a request, which rule decides and why. URL is an address, or "
    "HOST:PORT for the connection alone. Exit 0: allowed, 77: denied.";
constexpr std::string_view kDiffDoc =
    "Say what a change of policy opens and closes: hosts, ports, programs, requests, paths, "
    "inspection. What cannot be compared is called changed. Exit 0 whatever it says, 65 when a "
    "file is not a policy.";
constexpr std::string_view kSuggestDoc =
    "Say what would let pass what a run was refused, and nothing else. With a policy, each "
    "addition "
    "was tried; what none would help is said with its reason.";
constexpr std::string_view kPostDoc =
    "Post a report as one comment on a pull request, kept up to date by later posts. The report is "
    "treated as hostile input, so another job than the one that ran the agent may hold the token.";

constexpr std::string_view kVerifyBundleDoc =
    "Say whether a Sigstore bundle signs a file, or a digest (`sha256:...`), and who made it: "
    "offline, by a trusted root. Exit 0: verified, 77: not, with a reason's code at the front of "
    "the error.";

constexpr std::string_view kImagePullDoc =
    "Verify an image, fetch it and unpack it, so that a run begins at once. Nothing is unpacked "
    "before its signature is verified.";
constexpr std::string_view kImageVerifyDoc =
    "Say who signed an image and whether that is accepted, or why not, for every signature there "
    "is. Exit 77: refused, 75: a place that may hold signatures could not be asked.";

static_assert(WellFormed(kJson));

Command RunCommandSpec() {
  Command command{.name = "run",
                  .operands = "[-- COMMAND ARG...]",
                  .doc = "Run an agent (or COMMAND) in the sandbox and write the report.",
                  .options = {},
                  .variables = {kGitHubVariables, kCiVariable, kStoreVariable, kRegistryVariable}};
  for (const RunOption& option : kRunOptions) command.options.push_back(option.spec);
  return command;
}

// What `run` and the commands about images share.
void AddImageOptions(std::vector<OptionSpec>* options) {
  for (const RunOption& option : kRunOptions) {
    std::string_view name = option.spec.name;
    if (name.starts_with("image-") || name == "trusted-root" || name == "insecure-registry" ||
        name == "ca-file" || name == "workdir" || name == "policy-ref") {
      options->push_back(option.spec);
    }
  }
}

Command ImageCommandSpec(std::string_view name, std::string_view doc) {
  Command command{
      .name = name,
      .operands = "REF",
      .doc = doc,
      .options = {{"platform", "OS/ARCHITECTURE[/VARIANT]", "",
                   "Whose manifest, of an index; without it, this machine's."},
                  {"username", "NAME", "", "Who asks the registry, before every other credential."},
                  {"password-stdin", "", "",
                   "Read the password of `username` from standard input."},
                  kJson},
      .variables = {kStoreVariable,
                    kRegistryVariable,
                    {"HTTPS_PROXY", "A proxy on the way to the registry."},
                    kGitHubVariables,
                    kCiVariable}};
  AddImageOptions(&command.options);
  return command;
}

Command PostCommandSpec() {
  return {.name = "post",
          .operands = "REPORT-DIR",
          .doc = kPostDoc,
          .options =
              {{"repository", "OWNER/NAME", "", "The repository; without it, the event's."},
               {"number", "NUMBER", "", "The pull request; without it, the event's."},
               {"api-url", "URL", "", "The forge's API; without it, the event's."},
               {"marker", "TEXT", "",
                "Tells the comments of several workflows apart; without it, the workflow and the "
                "job."},
               {"ca-file", "FILE", "",
                "The certificates (PEM) that the forge is verified with; without it, the "
                "system's."},
               kJson},
          .variables = {{"GITHUB_TOKEN", "The token to post with: `pull-requests: write`."},
                        {"HTTPS_PROXY", "A proxy on the way to the forge."},
                        kGitHubVariables}};
}

Command ExplainCommandSpec() {
  return {.name = "policy explain",
          .operands = "URL",
          .doc = kExplainDoc,
          .options = {{"policy", "FILE", "",
                       "The policy file; without it, `.agentic-ci/openshell-policy.yml` as it lies "
                       "in the checkout."},
                      {"binary", "PATH", "",
                       "The calling program, a path or a name on the PATH; further ones are its "
                       "ancestors, nearest first.",
                       true},
                      {"method", "METHOD", "GET",
                       "The request's method; with a wss URL, WEBSOCKET_TEXT for a message."},
                      {"body", "FILE", "",
                       "What the request carries, where the policy judges bodies: GraphQL, "
                       "JSON-RPC, MCP; or the message."},
                      {"agent", "NAME", "command",
                       "Whose run it would be: chooses the model's host of `defaults: minimal`."},
                      kJson},
          .variables = {}};
}

Command DiffCommandSpec() {
  return {.name = "policy diff",
          .operands = "BEFORE AFTER",
          .doc = kDiffDoc,
          .options = {{"secret", "NAME@HOST", "",
                       "A credential and its host: said where it comes into reach.", true},
                      {"agent", "NAME", "command",
                       "Whose runs they are for: chooses the model's host of `defaults: minimal`."},
                      kJson},
          .variables = {}};
}

Command VerifyBundleCommandSpec() {
  return {.name = "verify-bundle",
          .operands = "FILE|DIGEST",
          .doc = kVerifyBundleDoc,
          .options =
              {{"bundle", "FILE", "", "The bundle: JSON, versions 0.1 to 0.3."},
               {"legacy-layer", "FILE", "",
                "In its place, what cosign kept in a registry before bundles, as JSON: `payload`, "
                "the "
                "layer in base64; `annotations`, an object, those of its descriptor."},
               {"certificate-identity", "ID", "",
                "Who may have signed: the certificate's subject alternative name, or a glob for it "
                "(`*` ends at `/`, `**` crosses it)."},
               {"certificate-oidc-issuer", "URL", "", "Who vouched for that identity. Exact."},
               {"key", "FILE", "", "The public key (PEM) that must have signed, in place of both."},
               {"require-log", "", "", "With a key: only a signature that a transparency log has."},
               {"no-log", "", "", "With an identity: a timestamp authority's word is enough."},
               {"require-timestamp", "", "", "Only a signature with a timestamp authority's word."},
               {"trusted-root", "FILE", "",
                "Whose logs and certificates are believed; without it, those of the public "
                "instance, "
                "built in."},
               {"staging", "", "", "For sigstore-conformance; needs `trusted-root`."},
               {"predicate-type", "URI", "",
                "Statements that count, beside cosign's signatures; without it, every type does.",
                true},
               kJson},
          .variables = {}};
}

// `text` in lines of at most 80 columns, each behind `indent` blanks.
std::string Wrap(std::string_view text, size_t indent) {
  constexpr size_t kColumns = 80;
  std::string out;
  std::string line(indent, ' ');
  while (!text.empty()) {
    size_t blank = text.find(' ');
    std::string_view word = text.substr(0, blank);
    if (line.size() > indent && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return out + line + "\n";
}

std::string RenderOption(const OptionSpec& option) {
  std::string text = "  --" + std::string(option.name);
  if (!option.value.empty()) text += " " + std::string(option.value);
  text += "\n";
  std::string doc(option.doc);
  if (option.repeatable) doc += " May be given several times.";
  if (!option.fallback.empty()) doc += " [" + std::string(option.fallback) + "]";
  return text + Wrap(doc, 6);
}

}  // namespace

std::vector<Command> Commands() {
  return {
      RunCommandSpec(),
      PostCommandSpec(),
      {.name = "policy check",
       .operands = "FILE...",
       .doc = "Read policy files and say what is wrong with them, or odd.",
       .options = {kJson},
       .variables = {}},
      ExplainCommandSpec(),
      DiffCommandSpec(),
      {.name = "policy suggest",
       .operands = "REPORT-DIR|events.ocsf.jsonl",
       .doc = kSuggestDoc,
       .options = {{"policy", "FILE", "",
                    "The policy to add to: prints a patch for `git apply`, to be applied where "
                    "FILE is relative to. Without it, prints policies to paste."}},
       .variables = {}},
      {.name = "policy test",
       .operands = "FILE...",
       .doc = "Run tables of cases against the policies that they name. Exit 65 when a case fails.",
       .options = {kJson},
       .variables = {}},
      {.name = "policy schema",
       .operands = "",
       .doc = "Print the JSON Schema of the policy file, for editors.",
       .options = {},
       .variables = {}},
      ImageCommandSpec("image pull", kImagePullDoc),
      ImageCommandSpec("image verify", kImageVerifyDoc),
      ImageCommandSpec("image inspect",
                       "Say what an image is and what its configuration asks for. Nothing of it is "
                       "verified or unpacked."),
      {.name = "image check",
       .operands = "",
       .doc = "Read all unpacked layers again and say which are not as they were unpacked. Exit 74 "
              "when there are any.",
       .options = {{"remove", "", "", "Remove those: whoever needs one fetches it again. Exit 0."},
                   kJson},
       .variables = {kStoreVariable}},
      {.name = "image prune",
       .operands = "",
       .doc =
           "Remove unpacked layers, those used longest ago first, what killed runs left, and kept "
           "verdicts.",
       .options = {{"keep", "SIZE", "0", "How much may stay, such as `10GiB`."}, kJson},
       .variables = {kStoreVariable}},
      VerifyBundleCommandSpec(),
      {.name = "completion",
       .operands = "[bash|zsh|fish]",
       .doc = "Print a script that completes commands and options, for bash without an operand: "
              "`source <(agentic-ci completion)`.",
       .options = {},
       .variables = {}},
      {.name = "action",
       .operands = "",
       .doc = "What action.yml calls: `run` with the action's inputs; writes the step's summary, "
              "annotations and outputs.",
       .options = {},
       .variables = {{"INPUTS", "The action's inputs as one JSON object."}, kGitHubVariables},
       .hidden = true},
  };
}

Result<Command> SelectCommand(const std::vector<Command>& commands,
                              const std::vector<std::string>& words) {
  if (words.empty()) return Error{Code::kUsage, "a command is missing", "agentic-ci --help"};
  std::string one = words[0];
  std::string two = words.size() > 1 ? one + " " + words[1] : one;
  std::vector<std::string_view> names;
  bool begins_one = false;  // The first word begins a command of two words.
  for (const Command& command : commands) {
    if (command.name == one || command.name == two) return command;
    begins_one = begins_one || command.name.starts_with(one + " ");
    names.push_back(command.name);
  }
  const std::string& meant = begins_one ? two : one;
  std::string nearest(codec::NearestName(meant, names));
  return Error{Code::kUsage, "unknown command '" + meant + "'",
               nearest.empty() ? "agentic-ci --help" : "agentic-ci " + nearest};
}

std::string RenderHelp(const std::vector<Command>& commands) {
  std::string text =
      "agentic-ci runs an AI coding agent on a pull request inside a sandbox.\n\n"
      "usage: agentic-ci COMMAND [options]\n\n";
  for (const Command& command : commands) {
    if (command.hidden) continue;
    text += "  " + std::string(command.name);
    if (!command.operands.empty()) text += " " + std::string(command.operands);
    text += "\n" + Wrap(command.doc, 6);
  }
  return text +
         "\n  --version, -V\n      Print the version.\n"
         "  --help, -h, help [COMMAND]\n      Print this, or a command's options.\n";
}

Result<std::string> HelpFor(const std::vector<Command>& commands,
                            const std::vector<std::string>& words) {
  if (words.empty()) return RenderHelp(commands);
  std::vector<Command> group;
  for (const Command& command : commands) {
    if (command.name.starts_with(words[0] + " ")) group.push_back(command);
  }
  if (words.size() == 1 && !group.empty()) return RenderHelp(group);
  Command command = TRY(SelectCommand(commands, words));
  return RenderHelp(command);
}

std::string RenderHelp(const Command& command) {
  std::string text = "usage: agentic-ci " + std::string(command.name);
  if (!command.options.empty()) text += " [options]";
  if (!command.operands.empty()) text += " " + std::string(command.operands);
  text += "\n\n" + Wrap(command.doc, 0);
  if (!command.options.empty()) text += "\nOptions (with their defaults in brackets):\n";
  for (const OptionSpec& option : command.options) text += RenderOption(option);
  if (!command.variables.empty()) text += "\nEnvironment:\n";
  for (const VariableSpec& variable : command.variables) {
    text += "  " + std::string(variable.name) + "\n" + Wrap(variable.doc, 6);
  }
  return text;
}

}  // namespace cli
