// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include "cli/config_command.h"
#include "cli/eval_command.h"
#include "cli/policy_command.h"
#include "cli/sandbox_command.h"
#include "cli/setup_command.h"
#include "cli/variables.h"
#include "codec/text/nearest.h"

namespace cli {
namespace {

// Docs longer than a line live here, where they can be read.
constexpr std::string_view kDiffDoc =
    "Show what a policy change opens and closes: hosts, ports, programs, requests, paths, "
    "inspection. Anything that cannot be compared is listed as changed. The exit status is 0 "
    "whatever the differences, or 65 if a file is not a valid policy.";
constexpr std::string_view kSuggestDoc =
    "Suggest policy entries that would allow exactly what runs were refused, with the programs "
    "that "
    "asked and how often. With a policy, each addition is tested first, and a request that no "
    "addition can allow is listed with the reason. Nothing is suggested for a host that a run's "
    "credentials are sent to. Since a refusal often ends what an agent tries, repeat: run with "
    "`--learn FILE`, add what you agree to, run again, until nothing is suggested.";
constexpr std::string_view kPostDoc =
    "Post a report to a pull request, or to a merge request of GitLab: one comment, and a review "
    "with comments beside the lines. "
    "Later posts update them, and repeat nothing. The report is treated as untrusted input, so the "
    "token can be kept in a separate job from the one that ran the agent.";

constexpr std::string_view kVerifyBundleDoc =
    "Verify a Sigstore bundle for a file or a digest (`sha256:...`), offline, against a trusted "
    "root, and show who signed it. Exit status 0: verified; 77: not verified, with a reason code "
    "at the start of the error.";

constexpr std::string_view kImagePullDoc =
    "Verify, download and unpack an image, so that a later run can start at once. Nothing is "
    "unpacked before the signature is verified.";
constexpr std::string_view kImageVerifyDoc =
    "Show, for every signature of an image, who signed it and whether it is accepted, or why not. "
    "Exit status 77: refused; 75: a location that may contain signatures could not be reached.";

constexpr std::string_view kActionDoc =
    "Called by action.yml and by GitLab's component `run`: `run` with their inputs; writes the "
    "step summary, annotations and outputs.";
constexpr std::string_view kActionPostDoc =
    "Called by post/action.yml and by GitLab's component `post`: `post` with their inputs.";
constexpr std::string_view kConfigCheckDoc =
    "Check configuration files, the repository's own if none is given, and the prompts they name, "
    "as they are in the working tree; without a file also that no workflow has a word like OWNER "
    "left that stands for something. Reports every error.";
constexpr std::string_view kConfigExplainDoc =
    "Show the task that `run` with the same options would carry out, every value it would have, "
    "and where each comes from: the command line, a line of the configuration, or a default.";
constexpr std::string_view kConfigInitDoc =
    "Write a first policy, configuration, prompt and workflow (on GitLab, an include of the "
    "component) that fit the repository: its languages, its forge, its tests. A file that exists "
    "is kept.";

constexpr std::string_view kDoctorDoc =
    "Show what this host can enforce, by starting a sandbox as a run does: each mechanism as "
    "available, restricted or absent, and what to type for more. Exit status 69: no run can start, "
    "in either tier.";

static_assert(WellFormed(kJsonOption));

Command RunCommandSpec() {
  Command command{.name = "run",
                  .operands = "[-- COMMAND ARG...]",
                  .doc = "Run an agent (or COMMAND) in the sandbox and write the report.",
                  .options = {},
                  .variables = {kGitHubVariables, kGitLabVariables, kGitLabTokenVariable,
                                kCiVariable, kStoreVariable, kRegistryVariable, kProxyVariable,
                                kNoProxyVariable, kProxyByNameVariable, kColourVariable}};
  for (const RunOption& option : kRunOptions) command.options.push_back(option.spec);
  const OptionSpec more[] = {
      {"sandbox", "NAME", "",
       "Run in this sandbox, of `setup` or `sandbox create`, and leave it running. What it was "
       "created with stays: of the other options only `agent`, `prompt`, `prompt-file`, `model` "
       "and `timeout` may be given. The report is written when the sandbox ends."},
      {"watch-texts", "FILE", "",
       "Texts, one per line, whose first occurrence in what models are sent is recorded in "
       "`events.ocsf.jsonl`, by the text's number."},
      {"watch-sent", "FILE", "",
       "Texts of at least 8 characters, one per line; the first time that a server is sent one is "
       "recorded in `events.ocsf.jsonl`, by the text's number: as it is, in "
       "the forms that the usual programs give it, or a piece of it of 24 letters and digits."},
      kModelHostOption,
      {"record-programs", "", "",
       "Record every program that the agent starts, with its arguments, in `programs.jsonl`."},
      {"record-files", "", "",
       "Record what the agent left, ignored files and `.git` too, byte by byte in `files.jsonl`."}};
  command.options.insert(command.options.end(), std::begin(more), std::end(more));
  return command;
}

// Adds the options that `run` and the commands about images share.
void AddImageOptions(std::vector<OptionSpec>* options) {
  for (const RunOption& option : kRunOptions) {
    std::string_view name = option.spec.name;
    if (name.starts_with("image-") || name == "trusted-root" || name == "insecure-registry" ||
        name == "ca-file" || name == "workdir" || name == "policy-ref") {
      options->push_back(option.spec);
      if (name == "workdir")
        options->back().doc = "The checkout whose configuration names signers.";
    }
  }
}

Command ImageCommandSpec(std::string_view name, std::string_view doc) {
  Command command{
      .name = name,
      .operands = "REF",
      .doc = doc,
      .options = {{"platform", "OS/ARCHITECTURE[/VARIANT]", "",
                   "The platform to select from an image index. If not given, this machine's."},
                  {"username", "NAME", "",
                   "The user name for the registry; takes precedence over all other credentials."},
                  {"password-stdin", "", "",
                   "Read the password of `username` from standard input."},
                  kJsonOption},
      .variables = {kStoreVariable, kRegistryVariable, kProxyVariable, kNoProxyVariable,
                    kGitHubVariables, kGitLabVariables, kCiVariable}};
  AddImageOptions(&command.options);
  return command;
}

Command PostCommandSpec() {
  return {
      .name = "post",
      .operands = "REPORT-DIR",
      .doc = kPostDoc,
      .options =
          {{"repository", "OWNER/NAME", "",
            "The repository; of GitLab the project, GROUP/NAME. If not given, that of the event."},
           {"number", "NUMBER", "",
            "The pull request or merge request. If not given, that of the event."},
           {"api-url", "URL", "",
            "The URL of the forge's API. If not given, that of the event. One that ends with "
            "/api/v4 is GitLab's."},
           {"what", "PARTS", "comment,review",
            "What to post: `comment` (one comment that later posts update), `review` (the agent's "
            "findings and suggested changes beside the lines they are about), `check` (on GitHub, "
            "a check run with an annotation for each finding, which requires `checks: write`), "
            "`status` (a commit status), `sarif` (on GitHub, code scanning), and one of `commits` "
            "(the agent's changes as a commit on the pull request's branch), `branch` (on a branch "
            "of "
            "their own) and `pull-request` (with a pull request; `merge-request` is the same). On "
            "GitLab, all but `check` and `sarif`. See docs/reference/posting.md."},
           {"task", "NAME", "",
            "The task whose gates hold for the changes. If not given, those of every task do."},
           {"branch", "NAME", "",
            "The branch for `branch` and `pull-request`. If not given, "
            "`agentic-ci/pull-NUMBER-...`, or with the name of the branch that the run was started "
            "for."},
           {"title", "TEXT", "",
            "The title of the commit and the pull request with the agent's changes."},
           {"label", "NAME", "",
            "A label for the pull request: the one with the changes, if there is one.", true},
           {"dry-run", "", "",
            "Show each request that would change something, as one JSON object per line, and send "
            "none of them."},
           {"marker", "TEXT", "",
            "Distinguishes the comments of several workflows. If not given, the names of the "
            "workflow and the job, and in a matrix the number of the job."},
           {"timeout", "DURATION", "3m",
            "How long posting may take, with all repetitions. A request that the forge leaves "
            "without an answer fails after a third of it, or a minute if that is shorter."},
           {"ca-file", "FILE", "",
            "The CA certificates (PEM) for verifying the forge. If not given, the system's."},
           kJsonOption},
      .variables = {{"GITHUB_TOKEN",
                     "The token to post with: `pull-requests: write`, and for the agent's changes "
                     "`contents: write`."},
                    {"GITLAB_TOKEN",
                     "The same for GitLab: a project or group access token with the role Developer "
                     "and the scope `api`. `CI_JOB_TOKEN` may not post: without GITLAB_TOKEN the "
                     "findings are printed, and the exit status is 78."},
                    kMatrixVariable,
                    kProxyVariable,
                    kNoProxyVariable,
                    kGitHubVariables,
                    kGitLabVariables}};
}

Command CheckCommandSpec() {
  return {
      .name = "policy check",
      .operands = "FILE...",
      .doc = "Check policy files and report errors and warnings.",
      .options = {{"for", "BACKEND", "",
                   "Also say what would be different in a sandbox of this backend: `openshell`."},
                  kJsonOption},
      .variables = {}};
}

Command ExportCommandSpec() {
  return {
      .name = "policy export",
      .operands = "",
      .doc =
          "Print a policy, of either form, as `run --backend openshell` gives it to OpenShell, "
          "without the credentials of a run. Each difference is in a comment.",
      .options = {{"to", "BACKEND", "", "Whose policy to print: `openshell`. Required."},
                  {"policy", "FILE", "",
                   "The policy file. If not given, `.agentic-ci/openshell-policy.yml` as it is in "
                   "the working tree."},
                  {"agent", "NAME", "command",
                   "The agent that is to run; determines the model host of `defaults: minimal`."}},
      .variables = {}};
}

Command DiffCommandSpec() {
  return {
      .name = "policy diff",
      .operands = "BEFORE AFTER",
      .doc = kDiffDoc,
      .options =
          {{"secret", "NAME@HOST", "",
            "A credential and its host; the diff shows where the host becomes reachable.", true},
           {"agent", "NAME", "command",
            "The agent the policies are for; determines the model host of `defaults: minimal`."},
           kJsonOption},
      .variables = {}};
}

Command VerifyBundleCommandSpec() {
  return {
      .name = "verify-bundle",
      .operands = "FILE|DIGEST",
      .doc = kVerifyBundleDoc,
      .options =
          {{"bundle", "FILE", "", "The bundle, in JSON, version 0.1 to 0.3."},
           {"legacy-layer", "FILE", "",
            "Instead of a bundle, a signature in cosign's older registry format, as JSON: "
            "`payload` is the layer in base64, `annotations` an object with the annotations of its "
            "descriptor."},
           {"certificate-identity", "ID", "",
            "The accepted signer: the certificate's subject alternative name, or a pattern for it "
            "(`*` does not match `/`, `**` does)."},
           {"certificate-oidc-issuer", "URL", "",
            "The OIDC issuer that authenticated that identity; matched exactly."},
           {"key", "FILE", "",
            "The public key (PEM) that must have signed, instead of an identity and an issuer."},
           {"require-log", "", "", "With a key: require a transparency log entry."},
           {"no-log", "", "",
            "With an identity: accept a signed timestamp instead of a transparency log entry."},
           {"require-timestamp", "", "", "Require a signed timestamp."},
           {"trusted-root", "FILE", "",
            "The trusted root with the logs and certificate authorities to trust. If not given, "
            "the built-in one of the public instance."},
           {"staging", "", "", "For sigstore-conformance; requires `trusted-root`."},
           {"predicate-type", "URI", "",
            "An accepted statement type, in addition to cosign's signatures. If not given, every "
            "type is accepted.",
            true},
           kJsonOption},
      .variables = {}};
}

Command ActionCommandSpec(std::string_view name, std::string_view doc) {
  return {.name = name,
          .operands = "",
          .doc = doc,
          .options = {},
          .variables = {kInputVariables, kGitHubVariables, kMatrixVariable},
          .hidden = true};
}

Command SchemaCommandSpec(std::string_view name, std::string_view doc) {
  return {.name = name, .operands = "", .doc = doc, .options = {}, .variables = {}};
}

Command ConfigCheckCommandSpec() {
  return {.name = "config check",
          .operands = "[FILE...]",
          .doc = kConfigCheckDoc,
          .options = {kJsonOption},
          .variables = {}};
}

Command ConfigExplainCommandSpec() {
  Command command = RunCommandSpec();
  command.name = "config explain";
  command.doc = kConfigExplainDoc;
  command.options.push_back({"show-prompt", "", "", "Also print the prompt as it would be sent."});
  command.variables = {kGitHubVariables, kCiVariable};
  return command;
}

Command ConfigInitCommandSpec() {
  return {.name = "config init",
          .operands = "",
          .doc = kConfigInitDoc,
          .options = ConfigInitOptions(),
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

// Those about sandboxes that last, behind `run` and `post`.
std::vector<Command> WithLasting(std::vector<Command> commands) {
  std::vector<Command> lasting = SetupCommands();
  for (Command& command : SandboxCommands()) lasting.push_back(std::move(command));
  lasting.push_back(WatchCommandSpec());
  for (Command& command : ReportCommands()) lasting.push_back(std::move(command));
  commands.insert(commands.begin() + 2, lasting.begin(), lasting.end());
  // Before `completion` and what is for the action alone.
  std::vector<Command> evaluations = EvalCommands();
  commands.insert(commands.end() - 3, evaluations.begin(), evaluations.end());
  return commands;
}

}  // namespace

std::vector<Command> Commands() {
  return WithLasting({
      RunCommandSpec(),
      PostCommandSpec(),
      CheckCommandSpec(),
      ExplainCommandSpec(),
      DiffCommandSpec(),
      {.name = "policy suggest",
       .operands = "REPORT-DIR|LEARNED-FILE...",
       .doc = kSuggestDoc,
       .options = {{"policy", "FILE", "",
                    "The policy to extend: prints a patch for `git apply`, with FILE as given. If "
                    "not given, prints policy entries to paste."},
                   {"whole", "", "", "Print the whole policy with the additions, not a patch."},
                   {"secret", "NAME@HOST", "",
                    "A host that a credential is sent to. A file of `run --learn` names those of "
                    "its runs; a report does not.",
                    true}},
       .variables = {}},
      ExportCommandSpec(),
      {.name = "policy test",
       .operands = "FILE...",
       .doc = "Run tables of test cases against the policies they name. Exit status 65 if a case "
              "fails.",
       .options = {kJsonOption},
       .variables = {}},
      SchemaCommandSpec("policy schema", "Print the JSON Schema of the policy file, for editors."),
      ConfigCheckCommandSpec(),
      ConfigExplainCommandSpec(),
      ConfigInitCommandSpec(),
      SchemaCommandSpec("config schema",
                        "Print the JSON Schema of the configuration file, for editors."),
      ImageCommandSpec("image pull", kImagePullDoc),
      ImageCommandSpec("image verify", kImageVerifyDoc),
      ImageCommandSpec(
          "image inspect",
          "Show an image's manifest and configuration. Nothing is verified or unpacked."),
      {.name = "image check",
       .operands = "",
       .doc = "Read all unpacked layers again and list those that have changed since. Exit status "
              "74 if there are any.",
       .options =
           {{"remove", "", "",
             "Remove the changed layers; they are downloaded again when needed. Exit status 0."},
            kJsonOption},
       .variables = {kStoreVariable}},
      {.name = "image prune",
       .operands = "",
       .doc = "Remove unpacked layers, least recently used first, leftovers of killed runs, "
              "cached verdicts, and snapshots of sandboxes whose tag was given to a newer one.",
       .options = {{"keep", "SIZE", "0", "How much to keep of layers: `10GiB`."}, kJsonOption},
       .variables = {kStoreVariable}},
      VerifyBundleCommandSpec(),
      {.name = "doctor",
       .operands = "",
       .doc = kDoctorDoc,
       .options = {{"workdir", "DIR", ".", "The checkout that a run would have."}, kJsonOption},
       .variables = {{"TMPDIR", "Where the writable layers lie if memory cannot hold them."}}},
      {.name = "completion",
       .operands = "[bash|zsh|fish]",
       .doc = "Print a shell completion script (default: bash): `source <(agentic-ci completion)`.",
       .options = {},
       .variables = {}},
      ActionCommandSpec("action post", kActionPostDoc),
      ActionCommandSpec("action", kActionDoc),
  });
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
    names.push_back(command.name.substr(0, command.name.find(' ')));
  }
  if (one == "version") {
    return Error{Code::kUsage, "unknown command 'version'", "agentic-ci --version"};
  }
  // "init" is said for "config init".
  for (const Command& command : commands) {
    if (begins_one || command.hidden || !command.name.ends_with(" " + one)) continue;
    return Error{Code::kUsage, "unknown command '" + one + "'",
                 "agentic-ci " + std::string(command.name)};
  }
  const std::string& meant = begins_one ? two : one;
  std::string nearest(codec::NearestName(meant, names));
  if (begins_one && (nearest.empty() || nearest == one)) nearest = one + " --help";
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
         "\n  --version, -V\n      Print the version, the architecture and the commit.\n"
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
