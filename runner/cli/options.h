// SPDX-License-Identifier: Apache-2.0
// The only list of options: the command line, the inputs in action.yml and docs/reference/cli.md
// are made from it. To add one to `run`: a member in run/request.h, a line here, `tools/check
// --update`.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "run/request.h"
#include "sandbox/limit/limit.h"

namespace cli {

// Returns the error of kUsage for a command line that asks for what does not exist.
Error Usage(std::string what, std::string hint = {});

// One option, as a person meets it.
struct OptionSpec {
  std::string_view name;   // Kebab-case, without the dashes.
  std::string_view value;  // The name of its value in help: "FILE"; empty for a switch.
  // The value that holds if it is not given, as one would type it; or empty.
  std::string_view fallback;
  std::string_view doc;     // Sentences.
  bool repeatable = false;  // In the action, one value per line.
};

// The gateway and the sandbox's own processes do not start in much less.
inline constexpr int64_t kMemoryBytesMin = int64_t{16} << 20;

// The ways in which the text of an option becomes a member of run::Request.
struct Text {
  std::string run::Request::*member;
};
struct Duration {
  int64_t run::Request::*member;  // Seconds.
  bool may_be_off;
};
struct Size {
  int64_t run::Request::*member;  // Bytes.
  bool may_be_off = false;
  int64_t least = 1;
};
struct Count {
  int64_t run::Request::*member;
};
struct Cpus {
  double run::Request::*member;
};
struct Dollars {
  double run::Request::*member;
};
struct Switch {
  bool run::Request::*member;
};
struct Tier {};
struct Backend {};
struct Secrets {
  std::vector<run::SecretBinding> run::Request::*member;
};
struct Providers {
  std::vector<run::ProviderBinding> run::Request::*member;
};
struct Texts {
  std::vector<std::string> run::Request::*member;
};
struct Variables {
  std::vector<std::pair<std::string, std::string>> run::Request::*member;
};
using Field = std::variant<Text, Duration, Size, Count, Cpus, Dollars, Switch, Tier, Backend,
                           Secrets, Providers, Texts, Variables>;

struct RunOption {
  OptionSpec spec;
  Field field;
};

inline constexpr auto kRunOptions = std::to_array<RunOption>({
    {{"task", "NAME", "",
      "The task of `.agentic-ci/config.yml` to carry out. Options that are given take precedence "
      "over what it says. If neither a task nor an agent, a command or an image is given, and the "
      "configuration has tasks, the task for the event."},
     Text{&run::Request::task}},
    {{"agent", "NAME", "command",
      "The agent to run: `claude-code`, `codex` or another one of docs/reference/agents.md, one of "
      "the configuration, or `command` for any program."},
     Text{&run::Request::agent}},
    {{"prompt", "TEXT", "", "The task for the agent. It is never passed through a shell."},
     Text{&run::Request::prompt}},
    {{"prompt-file", "FILE", "",
      "A file that contains the task, instead of `prompt`. One in the repository's `.agentic-ci/` "
      "is read at the commit that the policy is read at."},
     Text{&run::Request::prompt_file}},
    {{"model", "NAME", "", "The model to use. If not given, the agent's own default."},
     Text{&run::Request::model}},
    {{"workdir", "DIR", ".",
      "The checkout, or a directory in it, in which case the agent sees only that directory; the "
      "policy and the configuration are still those at the repository's root. The agent works on "
      "an overlay; the directory itself is not changed."},
     Text{&run::Request::workdir}},
    {{"policy", "FILE", "",
      "A policy file to use instead of the repository's `.agentic-ci/openshell-policy.yml`. If "
      "there is neither, the built-in default applies."},
     Text{&run::Request::policy_file}},
    {{"policy-ref", "REF", "",
      "The git ref to read the repository's policy and configuration from. If not given, the base "
      "of the CI event, or `HEAD` outside CI. `worktree` reads the checkout itself, which a pull "
      "request can change. Required under CI systems whose events agentic-ci does not read."},
     Text{&run::Request::policy_ref}},
    {{"keep-policy", "", "",
      "When the run receives SIGUSR1, it reads the `policy` file again and applies its network "
      "rules at once. With this option, an invalid file changes nothing; without it, an invalid "
      "file blocks all traffic until a valid one is read."},
     Switch{&run::Request::keep_policy}},
    {{"image", "REF", "",
      "The image to run the agent in: `[HOST/]REPOSITORY[:TAG][@DIGEST]`, `oci:DIRECTORY` or "
      "`docker-archive:FILE`. No part of it is unpacked before its signature is verified. Outside "
      "CI also `dir:DIRECTORY`, which has no signature. If not given, the sandbox contains the "
      "host's own programs, read-only."},
     Text{&run::Request::image}},
    {{"image-key", "FILE", "",
      "The public key (PEM) that must have signed the image, instead of the signers in the "
      "repository's configuration."},
     Text{&run::Request::image_key}},
    {{"image-identity", "ID", "",
      "The identity that must have signed the image (keyless signing), as in the Sigstore "
      "certificate; `*` and `**` match as in paths. Requires `image-issuer`."},
     Text{&run::Request::image_identity}},
    {{"image-issuer", "URL", "", "The OIDC issuer that must have authenticated `image-identity`."},
     Text{&run::Request::image_issuer}},
    {{"image-bundle", "FILE", "",
      "A Sigstore bundle for the image's digest, in addition to the signatures in its registry.",
      true},
     Texts{&run::Request::image_bundles}},
    {{"trusted-root", "FILE", "",
      "The trusted root (`trusted_root.json`) of the Sigstore instance to trust. If not given, the "
      "one in the configuration, or else the public instance's, as built into this version."},
     Text{&run::Request::trusted_root}},
    {{"insecure-registry", "HOST", "",
      "A registry to contact over plain HTTP. To confirm a registry on another machine, repeat it.",
      true},
     Texts{&run::Request::insecure_registries}},
    {{"ca-file", "FILE", "",
      "The CA certificates (PEM) for verifying network services. If not given, the system's."},
     Text{&run::Request::ca_file}},
    {{"gitlab-issuer", "URL", "",
      "On GitLab, the instance that must have signed the job's ID token. If not given, the one "
      "that "
      "`CI_SERVER_URL` names."},
     Text{&run::Request::gitlab_issuer}},
    {{"gitlab-keys", "FILE", "",
      "The keys that `gitlab-issuer` signs with, as it publishes them at `/oauth/discovery/keys`. "
      "If "
      "not given, they are fetched from there."},
     Text{&run::Request::gitlab_keys}},
    {{"gitlab-trust-variables", "", "",
      "On GitLab, let the run of a merge request have secrets although the job has no ID token. "
      "Only "
      "safe where the variables `CI_*` of a job cannot be set by those who may push a branch."},
     Switch{&run::Request::gitlab_trust_variables}},
    {{"isolation", "TIER", "namespaces",
      "How the agent is isolated: `namespaces`, or `landlock` for hosts that "
      "cannot "
      "give a namespace, such as a default container. The agent then works on a copy of the "
      "checkout, "
      "among the host's own files. The tiers differ: see the threat model."},
     Tier{}},
    {{"backend", "NAME", "native",
      "Whose sandbox the agent runs in: `native`, agentic-ci's own, or `openshell`, NVIDIA "
      "OpenShell's. With the latter, `image` is OpenShell's to fetch, and options that it cannot "
      "enforce are refused: see docs/reference/openshell.md."},
     Backend{}},
    {{"gateway", "URL", "",
      "The gateway of OpenShell to use, by its URL or by its name in `openshell gateway list`. If "
      "not given, it is OPENSHELL_GATEWAY or the selection of `openshell gateway select`. Without "
      "either, and for `own`, a gateway is started on this machine and ends with the sandbox."},
     Text{&run::Request::gateway}},
    {{"gateway-tls", "DIR", "",
      "The client certificates for the URL in `gateway`: `ca.crt`, `tls.crt` and `tls.key`."},
     Text{&run::Request::gateway_tls}},
    {{"gateway-provider", "NAME", "",
      "A provider that the gateway of OpenShell holds, by its name in `openshell provider list`. "
      "The sandbox gets its placeholders; the credential is in no variable of this machine.",
      true},
     Texts{&run::Request::gateway_providers}},
    {{"approval-mode", "MODE", "",
      "How OpenShell decides on policy proposals from the sandbox, `manual` or `auto`. The report "
      "lists them."},
     Text{&run::Request::approval_mode}},
    {{sandbox::OptionOf(sandbox::LimitName::kTimeout), "DURATION", "20m",
      "How long the agent may run: `90s`, `20m`, `1h30m`."},
     Duration{&run::Request::timeout_s, false}},
    {{sandbox::OptionOf(sandbox::LimitName::kIdle), "DURATION", "off",
      "How long the agent may go without printing anything."},
     Duration{&run::Request::idle_timeout_s, true}},
    {{sandbox::OptionOf(sandbox::LimitName::kMemory), "SIZE", "4GiB",
      "How much memory the sandbox may use."},
     Size{&run::Request::memory_bytes, false, kMemoryBytesMin}},
    {{sandbox::OptionOf(sandbox::LimitName::kCpus), "NUMBER", "all",
      "How many CPUs the sandbox may use, such as `1.5`."},
     Cpus{&run::Request::cpus}},
    {{sandbox::OptionOf(sandbox::LimitName::kPids), "NUMBER", "1024",
      "How many processes and threads the sandbox may contain."},
     Count{&run::Request::pids}},
    {{sandbox::OptionOf(sandbox::LimitName::kDisk), "SIZE", "8GiB",
      "How much data the sandbox may write."},
     Size{&run::Request::disk_bytes}},
    {{sandbox::OptionOf(sandbox::LimitName::kOutput), "SIZE", "64MiB",
      "How much output the agent may print."},
     Size{&run::Request::output_bytes}},
    {{sandbox::OptionOf(sandbox::LimitName::kAgentCpu), "DURATION", "off",
      "How much CPU time the processes of the sandbox may use altogether."},
     Duration{&run::Request::cpu_s, true}},
    {{sandbox::OptionOf(sandbox::LimitName::kOpenFiles), "NUMBER", "65536",
      "How many files each process may have open."},
     Count{&run::Request::open_files}},
    {{sandbox::OptionOf(sandbox::LimitName::kFileSize), "SIZE", "off",
      "How large a file may become. A process that writes beyond it receives SIGXFSZ."},
     Size{&run::Request::file_bytes, true}},
    {{sandbox::OptionOf(sandbox::LimitName::kHostBytes), "SIZE", "off",
      "How much data may be exchanged with each host, both directions together. Connections to a "
      "host that has used it up are cut, and further ones fail."},
     Size{&run::Request::host_bytes, true}},
    {{sandbox::OptionOf(sandbox::LimitName::kRunnerCpu), "DURATION", "5m",
      "How much CPU time agentic-ci itself, mainly its gateway, may spend on work that the agent "
      "causes."},
     Duration{&run::Request::runner_cpu_s, false}},
    {{sandbox::OptionOf(sandbox::LimitName::kTokens), "NUMBER", "",
      "How many input and output tokens models may use in total, including cached ones. If not "
      "given, the repository's configuration applies."},
     Count{&run::Request::max_tokens}},
    {{sandbox::OptionOf(sandbox::LimitName::kCost), "DOLLARS", "",
      "How many US dollars models may cost, such as `2.50`. Models without a known price are then "
      "refused."},
     Dollars{&run::Request::max_cost_usd}},
    {{sandbox::OptionOf(sandbox::LimitName::kRequests), "NUMBER", "",
      "How many requests may be sent to models."},
     Count{&run::Request::max_requests}},
    {{"budget-file", "FILE", "",
      "The file in which runs of this machine count what they spend, for the `budget` of the "
      "repository's configuration. If not given, a branch of the repository has it."},
     Text{&run::Request::budget_file}},
    {{"secret", "NAME[=VARIABLE]@HOST", "",
      "A credential for HOST only. The sandbox sees a placeholder in the variable NAME; in "
      "requests to HOST, the gateway replaces it with the value of VARIABLE (or NAME) from this "
      "process's environment.",
      true},
     Secrets{&run::Request::secrets}},
    {{"provider", "NAME[=VARIABLE]", "",
      "A service whose credential the gateway inserts into requests: `anthropic`, `openai`, "
      "`gemini`, `vertex`, `bedrock`, `azure`, `openai-compatible` for any server "
      "with OpenAI's API, `github`, `gitlab`, or `generic` for a bearer token at `API_BASE_URL`. "
      "An agent uses the first that it can have its model from. The value is taken from VARIABLE "
      "in this process's environment, or from the service's usual variable. "
      "`NAME:KEY=VALUE,...` exchanges the job's identity for one: see docs/reference/identity.md.",
      true},
     Providers{&run::Request::providers}},
    {{"env", "NAME=VALUE", "",
      "An environment variable for the agent. Nothing else from this process's environment enters "
      "the sandbox.",
      true},
     Variables{&run::Request::env}},
    {{"report-dir", "DIR", "agentic-ci-report", "The directory to write the report to."},
     Text{&run::Request::report_dir}},
    {{"events-to", "[VARIABLE@]URL", "",
      "Where to send the records of what was allowed and refused once the run has ended: "
      "`file:PATH`, `syslog+tcp://HOST:PORT`, `syslog+tls://HOST:PORT`, `https://...` for JSON "
      "lines, `splunk+https://...` or `elastic+https://HOST/STREAM`. A credential is taken from "
      "VARIABLE in this process's environment. What cannot be sent is a warning: see "
      "docs/reference/telemetry.md.",
      true},
     Texts{&run::Request::events_to}},
    {{"learn", "FILE", "",
      "Add what the policy refuses to FILE, which several runs may share, for `policy suggest "
      "FILE`. Nothing more is allowed because of it. FILE must not be in the checkout."},
     Text{&run::Request::learn}},
    {{"fail-on", "SEVERITY", "never",
      "Fail with 79 if the agent ends well and reports a finding of this severity or a worse one: "
      "`error` or `warning`. With `never`, findings do not change the exit status."},
     Text{&run::Request::fail_on}},
    {{"attest", "", "",
      "State what the run did and sign it, with the job's own identity through Sigstore: "
      "`run.sigstore.json` in the report directory, for `verify-run`. A job without an identity "
      "gets a statement that is not signed."},
     Switch{&run::Request::attest}},
    {{"attest-key", "FILE", "",
      "Sign the statement with this private key (PEM, without a password). The agent does not see "
      "the file."},
     Text{&run::Request::attest_key}},
    {{"attest-command", "COMMAND", "",
      "Have the statement signed by a command for `/bin/sh`, such as the client of a key service. "
      "It has what to sign on standard input, and the base64 of its SHA-256 in AGENTIC_CI_SHA256; "
      "it prints the signature. Requires `attest-public-key`."},
     Text{&run::Request::attest_command}},
    {{"attest-public-key", "FILE", "", "The public key (PEM) of `attest-command`."},
     Text{&run::Request::attest_public_key}},
    {{"signing-config", "FILE", "",
      "The services of the Sigstore instance to sign with (`signing_config.json`). If not given, "
      "the public instance's; a key needs none."},
     Text{&run::Request::signing_config}},
    {{"apply", "", "",
      "If the run succeeds, apply the changes that passed the gates to the checkout."},
     Switch{&run::Request::apply}},
    {{"apply-ignored", "", "",
      "With `apply`, also the files that git ignores and the agent made or changed, such as what a "
      "build made. They are in no patch; those that a gate refuses stay out, each named in the "
      "report."},
     Switch{&run::Request::apply_ignored}},
    {{"plan-only", "", "", "Print what the run would do, without starting anything."},
     Switch{&run::Request::plan_only}},
    {{"json", "", "", "Print the result as one JSON object."}, Switch{&run::Request::json}},
    {{"quiet", "", "", "Print warnings and the agent's output, and nothing else."},
     Switch{&run::Request::quiet}},
});

// Shared by every table of options: names sorted out at compile time, docs that are sentences.
constexpr bool WellFormed(const OptionSpec& spec) {
  for (char c : spec.name) {
    if (c != '-' && (c < 'a' || c > 'z')) return false;
  }
  return !spec.name.empty() && spec.doc.ends_with('.') && spec.doc.front() >= 'A' &&
         spec.doc.front() <= 'Z' && !spec.doc.ends_with("..") &&
         (!spec.value.empty() || spec.fallback.empty());
}

static_assert(
    [] {
      for (const RunOption& option : kRunOptions) {
        if (!WellFormed(option.spec)) return false;
      }
      return true;
    }(),
    "an option has a kebab-case name and a doc of whole sentences; a switch has no default");

// Returns a request with every default of the table.
run::Request DefaultRequest();

// Sets what `option` stands for from `text`. A repeatable one is appended to. Fails with kUsage and
// "--NAME: what is wrong".
Status SetOption(const RunOption& option, std::string_view text, run::Request* request);

// Checks what the table alone cannot say: options that exclude each other. Fails with kUsage.
Status CheckRequest(const run::Request& request);

// Returns the same two for the options of the configuration's tasks: SetOption() by name, whose
// errors do not repeat the name, and which knows which agents there are; CheckRequest().
const run::OptionRules& TaskOptionRules();

}  // namespace cli
