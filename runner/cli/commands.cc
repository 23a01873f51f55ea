// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include "cli/completion.h"
#include "cli/config_command.h"
#include "cli/eval_command.h"
#include "cli/github.h"
#include "cli/image_command.h"
#include "cli/policy_command.h"
#include "cli/run_command.h"
#include "cli/sandbox_command.h"
#include "cli/setup_command.h"
#include "cli/verify_bundle_command.h"
#include "codec/text/nearest.h"

namespace cli {
namespace {

// Docs longer than a line live here, where they can be read.
constexpr std::string_view kDiffDoc =
    "Show what a policy change opens and closes. Compares hosts, ports, programs, requests, paths "
    "and inspection. Anything that cannot be compared is listed as changed. The exit status is 0 "
    "however many there are, or 65 if a file is not a valid policy.";
constexpr std::string_view kSuggestDoc =
    "Suggest policy entries for requests that were refused. Each would allow exactly what runs "
    "were "
    "refused, and names the programs that asked and how often. With a policy, each addition is "
    "tested first, and a "
    "request that no addition can allow is listed with the reason. Nothing is suggested for a host "
    "that a run's credentials are sent to. Since a refusal often ends what an agent tries, repeat: "
    "run with `--learn FILE`, add what you agree to, run again, until nothing is suggested.";
constexpr std::string_view kPostDoc =
    "Post a report to a pull request or merge request. It becomes one comment, and a review with "
    "comments on the lines they are about. "
    "Later posts update them, and repeat nothing. The report is treated as untrusted input, so the "
    "token can be kept in a separate job from the one that ran the agent.";

constexpr std::string_view kVerifyBundleDoc =
    "Verify a Sigstore bundle and show who signed it. The bundle is for a file or a digest "
    "(`sha256:...`); it is verified offline, against a trusted root. Exit status 0: verified; 77: "
    "not verified, with a reason code "
    "at the start of the error.";

constexpr std::string_view kImagePullDoc =
    "Verify, download and unpack an image. A later run can then start at once. Nothing is "
    "unpacked before the signature is verified.";
constexpr std::string_view kImageVerifyDoc =
    "Show who signed an image. For every signature: whether it is accepted, or why not. "
    "Exit status 77: refused; 75: a location that may contain signatures could not be reached.";

constexpr std::string_view kActionDoc =
    "Called by action.yml and by GitLab's component `run`: `run` with their inputs; writes the "
    "step summary, annotations and outputs.";
constexpr std::string_view kActionPostDoc =
    "Called by post/action.yml and by GitLab's component `post`: `post` with their inputs.";
constexpr std::string_view kConfigCheckDoc =
    "Check configuration files and their prompts. Without FILE, checks the repository's own, as "
    "they are in the working tree, and that no placeholder such as OWNER is left in a workflow. "
    "Reports every error.";
constexpr std::string_view kConfigExplainDoc =
    "Show the task that `run` would carry out. Takes the same options, and shows every value with "
    "its source: the command line, a line of the configuration, or a default.";
constexpr std::string_view kConfigInitDoc =
    "Write a first configuration, policy, prompt and workflow. On GitLab, the workflow is an "
    "include of the component. They fit the repository's languages, forge and tests. A file that "
    "exists is kept.";

constexpr std::string_view kDoctorDoc =
    "Show what this host can enforce. Starts a sandbox as a run does, and lists each mechanism as "
    "available, restricted or absent, with what to type for more. Exit status 69: no run can "
    "start, in either tier.";

static_assert(WellFormed(kJsonOption));

Command RunCommandSpec() {
  Command command{.name = "run",
                  .carry_out = RunCommand,
                  .operands = "[-- PROGRAM ARG...]",
                  .doc = "Run an agent, or any PROGRAM, in a sandbox. Writes a report of the run.",
                  .example =
                      "  agentic-ci run --agent claude-code --prompt \"Fix the failing test\"\n  "
                      "agentic-ci run --task review\n",
                  .variables = {kGitHubVariables, kGitLabVariables, kGitLabTokenVariable,
                                kCiVariable, kStoreVariable, kRegistryVariable, kProxyVariable,
                                kNoProxyVariable, kProxyByNameVariable, kBudgetTokenVariable,
                                kEventsVariable, kActiveGatewayVariables, kGatewayUserVariables,
                                kSupervisorImageVariable, kTelemetryVariables, kColourVariable}};
  for (const RunOption& option : kRunOptions) command.options.push_back(option.spec);
  const OptionSpec more[] = {
      {"sandbox", "NAME", "",
       "Run in this sandbox, of `setup` or `sandbox create`, and leave it running. What it was "
       "created with stays: of the other options only `agent`, `prompt`, `prompt-file`, `model` "
       "and `timeout` may be given. The report is written when the sandbox ends."},
      {"watch-texts", "FILE", "",
       "Texts, one per line, whose first occurrence in what models are sent is recorded in "
       "`events.ocsf.jsonl`, by the text's number. For `after_untrusted`, a stranger wrote them."},
      {"watch-sent", "FILE", "",
       "Texts of at least 8 characters, one per line; the first time that a server is sent one is "
       "recorded in `events.ocsf.jsonl`, by the text's number: as it is, in "
       "the forms that the usual programs give it, or a piece of it of 24 letters and digits."},
      kModelHostOption,
      {"record-programs", "", "",
       "Record every program that the agent starts, with its arguments, in `programs.jsonl`."},
      {"record-files", "", "",
       "Record every path that the agent created, changed or deleted, with its content, in "
       "`files.jsonl`: also ignored files and those in `.git`."}};
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

Command ImageCommandSpec(std::string_view name, Handler carry_out, std::string_view doc,
                         std::string_view example) {
  Command command{
      .name = name,
      .carry_out = carry_out,
      .operands = "REF",
      .doc = doc,
      .example = example,
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

// Credentials that `post` takes.
constexpr VariableSpec kPostTokenVariable = {"GITHUB_TOKEN",
                                             "The token to post with: `pull-requests: write`, and "
                                             "for the agent's changes `contents: write`."};
constexpr VariableSpec kAppVariable = {
    "AGENTIC_CI_APP_ID, AGENTIC_CI_APP_KEY",
    "A GitHub App and its private key (PEM): the post comes from that application. Its token has "
    "only the permissions that the post needs, and is revoked after it. See "
    "docs/reference/posting.md."};
constexpr VariableSpec kPostGitLabTokenVariable = {
    "GITLAB_TOKEN",
    "The same for GitLab: a project or group access token with the role Developer and the scope "
    "`api`. `CI_JOB_TOKEN` may not post: without GITLAB_TOKEN the findings are printed, and the "
    "exit status is 78."};

Command PostCommandSpec() {
  return {
      .name = "post",
      .carry_out = PostCommand,
      .operands = "REPORT-DIR",
      .doc = kPostDoc,
      .example =
          "  agentic-ci post agentic-ci-report\n  agentic-ci post agentic-ci-report --what "
          "comment,review,check --dry-run\n",
      .options =
          {{"repository", "OWNER/NAME", "",
            "The repository; of GitLab the project, GROUP/NAME. If not given, the event's."},
           {"number", "NUMBER", "",
            "The pull request or merge request. If not given, the event's."},
           {"api-url", "URL", "",
            "The URL of the forge's API. If not given, the event's. One that ends with "
            "/api/v4 is GitLab's."},
           {"what", "PARTS", "comment,review",
            "What to post: `comment` (one comment that later posts update), `review` (the agent's "
            "findings and suggested changes on the lines they are about), `check` (on GitHub, "
            "a check run with an annotation for each finding, which requires `checks: write`), "
            "`status` (a commit status), `sarif` (on GitHub, code scanning), `statement` (on "
            "GitHub, the signed statement about the run into the repository's attestations), and "
            "one of `commits` (the agent's changes as a commit on the pull request's branch), "
            "`branch` (on a branch of their own) and `pull-request` (with a pull request; "
            "`merge-request` is the same). On "
            "GitLab, all but `check`, `sarif` and `statement`. See docs/reference/posting.md."},
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
           {"require-run", "", "",
            "Post nothing unless the report has a signed statement about a run of this workflow, "
            "and is the stated one. Needs `key`, or an identity and its issuer."},
           kKeyOption,
           kIdentityOption,
           kIssuerOption,
           kSignersRootOption,
           {"dry-run", "", "",
            "Show each request that would change something, as one JSON object per line, and send "
            "none of them."},
           {"marker", "TEXT", "",
            "Distinguishes the comments of several workflows. If not given, the names of the "
            "workflow and the job, and in a matrix the number of the job."},
           {"timeout", "DURATION", "3m",
            "How long posting may take, with all repetitions. A request that the forge "
            "does not respond to fails after a third of it, or a minute if that is shorter."},
           {"ca-file", "FILE", "",
            "The CA certificates (PEM) for verifying the forge. If not given, the system's."},
           kJsonOption},
      .variables = {kPostTokenVariable, kAppVariable, kPostGitLabTokenVariable, kMatrixVariable,
                    kProxyVariable, kNoProxyVariable, kGitHubVariables, kGitLabVariables}};
}

constexpr OptionSpec kOpenShellOption = {
    "openshell", "GENERATION", kGenerationDefault,
    "The generation of OpenShell that is meant: `0.0` or `0.1`."};

Command CheckCommandSpec() {
  return {
      .name = "policy check",
      .carry_out = PolicyCheckCommand,
      .operands = "FILE...",
      .doc = "Check policy files and report errors and warnings.",
      .example = "  agentic-ci policy check .agentic-ci/openshell-policy.yml\n",
      .options = {{"for", "BACKEND", "",
                   "Also say what would be different in a sandbox of this backend: `openshell`."},
                  kOpenShellOption,
                  kJsonOption}};
}

Command ExportCommandSpec() {
  return {
      .name = "policy export",
      .carry_out = PolicyExportCommand,
      .operands = "",
      .doc =
          "Print a policy as OpenShell takes it. It may be of either form; the result is what "
          "`run --backend openshell` gives to OpenShell, without the credentials of a run. Each "
          "difference is in a comment.",
      .example = "  agentic-ci policy export --to openshell > policy.yaml\n",
      .options = {{"to", "BACKEND", "", "Whose policy to print: `openshell`. Required."},
                  kOpenShellOption,
                  {"policy", "FILE", "",
                   "The policy file. If not given, `.agentic-ci/openshell-policy.yml` as it is in "
                   "the working tree."},
                  {"agent", "NAME", "command",
                   "The agent that is to run; determines the model host of `defaults: minimal`."}}};
}

Command DiffCommandSpec() {
  return {.name = "policy diff",
          .carry_out = PolicyDiffCommand,
          .operands = "BEFORE AFTER",
          .doc = kDiffDoc,
          .example = "  agentic-ci policy diff old.yml .agentic-ci/openshell-policy.yml\n",
          .options = {
              {"secret", "NAME@HOST", "",
               "A credential and its host; the diff shows where the host becomes reachable.", true},
              {"agent", "NAME", "command",
               "The agent the policies are for; determines the model host of `defaults: minimal`."},
              kJsonOption}};
}

Command VerifyBundleCommandSpec() {
  return {
      .name = "verify-bundle",
      .carry_out = VerifyBundleCommand,
      .operands = "FILE|DIGEST",
      .doc = kVerifyBundleDoc,
      .example = "  agentic-ci verify-bundle agent.tar --bundle agent.json --key cosign.pub\n",
      .options = {
          {"bundle", "FILE", "", "The bundle, in JSON, version 0.1 to 0.3."},
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
          kJsonOption}};
}

Command ActionCommandSpec(std::string_view name, Handler carry_out, std::string_view doc) {
  return {.name = name,
          .carry_out = carry_out,
          .operands = "",
          .doc = doc,
          .variables = {kInputVariables, kGitHubVariables, kMatrixVariable},
          .hidden = true};
}

Command SchemaCommandSpec(std::string_view name, Handler carry_out, std::string_view doc,
                          std::string_view example) {
  return {.name = name, .carry_out = carry_out, .operands = "", .doc = doc, .example = example};
}

Command ConfigCheckCommandSpec() {
  return {.name = "config check",
          .carry_out = ConfigCheckCommand,
          .operands = "[FILE...]",
          .doc = kConfigCheckDoc,
          .example = "  agentic-ci config check\n",
          .options = {kJsonOption}};
}

Command ConfigExplainCommandSpec() {
  Command command = RunCommandSpec();
  command.name = "config explain";
  command.carry_out = ConfigExplainCommand;
  command.example =
      "  agentic-ci config explain --task review\n"
      "  agentic-ci config explain --task review --show-prompt\n";
  command.doc = kConfigExplainDoc;
  command.options.push_back({"show-prompt", "", "", "Also print the prompt as it would be sent."});
  command.variables = {kGitHubVariables, kCiVariable};
  return command;
}

Command ConfigInitCommandSpec() {
  return {.name = "config init",
          .carry_out = ConfigInitCommand,
          .operands = "",
          .doc = kConfigInitDoc,
          .example = "  agentic-ci config init\n  agentic-ci config init --on label\n",
          .options = ConfigInitOptions()};
}

// Those about sandboxes that last, behind `run` and `post`.
std::vector<Command> WithLasting(std::vector<Command> commands) {
  std::vector<Command> lasting = SetupCommands();
  for (Command& command : SandboxCommands()) lasting.push_back(std::move(command));
  lasting.push_back(ServeCommandSpec());
  lasting.push_back(McpCommandSpec());
  lasting.push_back(WatchCommandSpec());
  for (Command& command : ReportCommands()) lasting.push_back(std::move(command));
  lasting.push_back(StatsCommandSpec());
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
       .carry_out = PolicySuggestCommand,
       .operands = "REPORT-DIR|LEARNED-FILE...",
       .doc = kSuggestDoc,
       .example = "  agentic-ci policy suggest agentic-ci-report\n  agentic-ci policy suggest "
                  "agentic-ci-report --policy policy.yml | git apply\n",
       .options = {{"policy", "FILE", "",
                    "The policy to extend: prints a patch for `git apply`, with FILE as given. If "
                    "not given, prints policy entries to paste."},
                   {"whole", "", "", "Print the whole policy with the additions, not a patch."},
                   {"secret", "NAME@HOST", "",
                    "A host that a credential is sent to. A file of `run --learn` names those of "
                    "its runs; a report does not.",
                    true}}},
      ExportCommandSpec(),
      {.name = "policy test",
       .carry_out = PolicyTestCommand,
       .operands = "FILE...",
       .doc = "Run tables of test cases against the policies they name. Exit status 65 if a case "
              "fails.",
       .example = "  agentic-ci policy test policy-tests.yml\n",
       .options = {kJsonOption}},
      {.name = "policy set",
       .carry_out = SandboxPolicyCommand,
       .operands = "NAME FILE",
       .doc =
           "Replace the network rules of a running sandbox. This is `sandbox policy` by the name "
           "that OpenShell's users know.",
       .example = "  agentic-ci policy set work narrow.yml\n"},
      SchemaCommandSpec("policy schema", PolicySchemaCommand,
                        "Print the JSON Schema of the policy file, for editors.",
                        "  agentic-ci policy schema > policy.schema.json\n"),
      ConfigCheckCommandSpec(),
      ConfigExplainCommandSpec(),
      ConfigInitCommandSpec(),
      SchemaCommandSpec("config schema", ConfigSchemaCommand,
                        "Print the JSON Schema of the configuration file.",
                        "  agentic-ci config schema > config.schema.json\n"),
      ImageCommandSpec("image pull", ImagePullCommand, kImagePullDoc,
                       "  agentic-ci image pull ghcr.io/OWNER/agent:1\n"),
      ImageCommandSpec("image verify", ImageVerifyCommand, kImageVerifyDoc,
                       "  agentic-ci image verify ghcr.io/OWNER/agent:1 --json\n"),
      ImageCommandSpec(
          "image inspect", ImageInspectCommand,
          "Show an image's manifest and configuration. Nothing is verified or unpacked.",
          "  agentic-ci image inspect oci:build/image\n"),
      {.name = "image check",
       .carry_out = ImageCheckCommand,
       .operands = "",
       .doc = "List unpacked layers that have changed. Reads all of them again. Exit status "
              "74 if there are any.",
       .example = "  agentic-ci image check --remove\n",
       .options =
           {{"remove", "", "",
             "Remove the changed layers; they are downloaded again when needed. Exit status 0."},
            kJsonOption},
       .variables = {kStoreVariable}},
      {.name = "image prune",
       .carry_out = ImagePruneCommand,
       .operands = "",
       .doc = "Remove unpacked layers, least recently used first. Also removes leftovers of killed "
              "runs, cached verdicts, and snapshots of sandboxes whose tag was given to a newer "
              "one.",
       .example = "  agentic-ci image prune --keep 10GiB\n",
       .options = {{"keep", "SIZE", "0", "How much to keep of layers: `10GiB`."}, kJsonOption},
       .variables = {kStoreVariable}},
      VerifyBundleCommandSpec(),
      VerifyRunCommandSpec(),
      {.name = "doctor",
       .carry_out = DoctorCommand,
       .operands = "",
       .doc = kDoctorDoc,
       .example = "  agentic-ci doctor\n  agentic-ci doctor --json | jq .\n",
       .options = {{"workdir", "DIR", ".", "The checkout that a run would have."}, kJsonOption},
       .variables = {{"TMPDIR", "Where the writable layers lie if memory cannot hold them."}}},
      {.name = "completion",
       .carry_out = CompletionCommand,
       .operands = "[bash|zsh|fish]",
       .doc = "Print a shell completion script. The default is bash: `source <(agentic-ci "
              "completion)`.",
       .example = "  agentic-ci completion zsh > ~/.zfunc/_agentic-ci\n  source <(agentic-ci "
                  "completion)\n"},
      ActionCommandSpec("action post", ActionPostCommand, kActionPostDoc),
      ActionCommandSpec("action", ActionCommand, kActionDoc),
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

}  // namespace cli
