// SPDX-License-Identifier: Apache-2.0
// Every command as data: its help (cli/help.h), docs/reference/cli.md, the man page and the
// completions are generated from it. A command is one row: how it is called, and the function of
// X_command.cc that carries it out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/options.h"

namespace cli {

// A variable of the environment that a command looks at. There are no others.
struct VariableSpec {
  std::string_view name;
  std::string_view doc;  // Sentences.
};

// Carries out a command and returns the exit status.
using Handler = Result<int> (*)(const Arguments&);

struct Command {
  std::string_view name;          // One word or two: "policy explain".
  Handler carry_out = nullptr;    // Never null in Commands().
  std::string_view operands;      // The operands as in usage: "REPORT-DIR".
  std::string_view doc;           // Sentences; the first is what a list of commands says.
  std::string_view example = {};  // Lines to type, each indented and with its end.
  std::vector<OptionSpec> options = {};
  std::vector<VariableSpec> variables = {};
  bool hidden = false;  // For the action alone: in the reference, not in `--help`.
};

inline constexpr OptionSpec kJsonOption = {"json", "", "", "Print the result as one JSON object."};
// An option that `run` and `eval run` share.
inline constexpr OptionSpec kModelHostOption = {
    "model-host", "HOST[:PORT]", "",
    "The server of the model that PROGRAM uses. Texts in requests to it do not count as sent to a "
    "server. The model server of a built-in agent need not be given."};

// Options of the commands that verify statements about runs.
inline constexpr OptionSpec kKeyOption = {"key", "FILE", "",
                                          "The public key (PEM) that must have signed."};
inline constexpr OptionSpec kIdentityOption = {
    "certificate-identity", "ID", "",
    "The workflow that must have signed, as its certificate names it, or a pattern for it (`*` "
    "does not match `/`, `**` does)."};
inline constexpr OptionSpec kIssuerOption = {"certificate-oidc-issuer", "URL", "",
                                             "The issuer of that identity; matched exactly."};
inline constexpr OptionSpec kSignersRootOption = {
    "trusted-root", "FILE", "",
    "The trusted root of the Sigstore instance. If not given, the public instance's."};

// Returns all commands. They are made anew at each call; it is called once.
std::vector<Command> Commands();

// Returns the command that `words` begin with. Fails with kUsage; the hint is the nearest one.
Result<Command> SelectCommand(const std::vector<Command>& commands,
                              const std::vector<std::string>& words);

// Carry out the commands that have no family, whose functions would be declared with it.
// `agentic-ci doctor`: shows what this host can enforce. Returns exit status 69 if no run could
// start.
Result<int> DoctorCommand(const Arguments& arguments);
// `agentic-ci post`: the only command that writes to a forge for its caller. Returns the exit
// status.
Result<int> PostCommand(const Arguments& arguments);
// `agentic-ci verify-run`: verifies what is stated of a run.
Command VerifyRunCommandSpec();

// The generation of OpenShell that `--openshell` means if it is not given.
inline constexpr char kGenerationDefault[] = "0.1";

// The variables that commands read.
inline constexpr VariableSpec kMatrixVariable = {
    "AGENTIC_CI_MATRIX*", "The job's values and number in a matrix, set by the action."};

inline constexpr VariableSpec kGitHubVariables = {
    "GITHUB_*",
    "Set by GitHub Actions (or Gitea, or Forgejo): the event, the step summary and the outputs. "
    "Read only if GITHUB_ACTIONS is `true`."};

inline constexpr VariableSpec kCiVariable = {
    "CI",
    "If this or a variable such as CIRCLECI is set, and neither GITHUB_ACTIONS nor GITLAB_CI is "
    "`true`, the run is under a CI system whose events agentic-ci does not read: `policy-ref` is "
    "then required, and the run gets no secrets. `CI` with the value `false` or `0` counts as not "
    "set."};
inline constexpr VariableSpec kGitLabVariables = {
    "GITLAB_CI, CI_*, GITLAB_USER_LOGIN",
    "Set by GitLab CI: the event. Read only if GITLAB_CI is `true`, and GITHUB_ACTIONS is not set. "
    "See docs/reference/gitlab.md."};

inline constexpr VariableSpec kGitLabTokenVariable = {
    "AGENTIC_CI_ID_TOKEN",
    "The ID token of a GitLab job, for the audience `agentic-ci`: what started the job, signed by "
    "GitLab. See docs/reference/gitlab.md."};

inline constexpr VariableSpec kColourVariable = {
    "NO_COLOR, TERM",
    "How a terminal is written to: without colours and links if NO_COLOR is set, as a pipe if TERM "
    "is `dumb`. No decision depends on them."};

inline constexpr VariableSpec kStoreVariable = {
    "AGENTIC_CI_STORE",
    "Where unpacked layers are stored. If not set, `agentic-ci/images` in XDG_CACHE_HOME, or in "
    "`~/.cache`."};
inline constexpr VariableSpec kProxyVariable = {
    "HTTPS_PROXY",
    "The proxy for agentic-ci's own requests, to the registry and the forge: "
    "`http://[USER:PASSWORD@]HOST[:PORT]`. If not set, `https_proxy`. In a run the agent's "
    "connections leave through it, too; see docs/reference/isolation.md."};
inline constexpr VariableSpec kProxyByNameVariable = {
    "AGENTIC_CI_PROXY_BY_NAME",
    "If `true`, that proxy is asked for the names that the agent connects to, and resolves them: "
    "which addresses they lead to is then not checked. If not set, it is asked for the addresses "
    "that were checked."};
inline constexpr VariableSpec kBudgetTokenVariable = {
    run::kBudgetTokenVariable,
    "The token that what runs spend is counted with, for `budget` of the configuration. If not "
    "set, the token of the forge. See docs/reference/config.md."};
inline constexpr VariableSpec kNoProxyVariable = {
    "NO_PROXY",
    "The hosts that are contacted without that proxy, each with all names below it, and networks, "
    "separated by "
    "commas: `corp.example,10.0.0.0/8`. If not set, `no_proxy`."};
inline constexpr VariableSpec kRegistryVariable = {
    "DOCKER_AUTH_CONFIG, REGISTRY_AUTH_FILE, DOCKER_CONFIG, GITHUB_TOKEN, CI_*",
    "Registry credentials, in this order, together with files in XDG_RUNTIME_DIR and "
    "XDG_CONFIG_HOME. Each is sent only to the registry it is for. See docs/reference/images.md."};

inline constexpr VariableSpec kSupervisorImageVariable = {
    "OPENSHELL_SUPERVISOR_IMAGE",
    "For a gateway of OpenShell that the run starts itself: the image that has the sandbox's "
    "supervisor. If not set, the `openshell-sandbox` on the PATH, else OpenShell's own image."};

inline constexpr VariableSpec kActiveGatewayVariables = {
    "OPENSHELL_GATEWAY, XDG_CONFIG_HOME, HOME",
    "The gateway of OpenShell that is used if `gateway` is not given: this name, else the one in "
    "`openshell/active_gateway` in XDG_CONFIG_HOME, or in `~/.config`."};

inline constexpr VariableSpec kGatewayUserVariables = {
    "OPENSHELL_WORKSPACE, OPENSHELL_OIDC_CLIENT_SECRET",
    "At a gateway of OpenShell 0.1: the workspace of the run's sandbox, if not `default`, and the "
    "secret with which the client that the registered gateway names (`oidc_client_id`) gets its "
    "token, as in a job of CI. If not set, the token is the one of `openshell gateway login`."};

inline constexpr VariableSpec kTelemetryVariables = {
    "OTEL_*, TRACEPARENT, TRACESTATE",
    "OpenTelemetry's: the collector that gets the run's spans, metrics and logs at its end, if "
    "OTEL_EXPORTER_OTLP_ENDPOINT or one of its siblings is set. See docs/reference/telemetry.md."};
inline constexpr VariableSpec kEventsVariable = {
    "AGENTIC_CI_EVENTS_TO", "More targets for `events-to`, separated by blanks."};

inline constexpr VariableSpec kInputVariables = {
    "INPUTS, AGENTIC_CI_INPUT_*",
    "INPUTS has the action's inputs as one JSON object. If it is not set, each AGENTIC_CI_INPUT_* "
    "is one of the component's inputs."};

}  // namespace cli
