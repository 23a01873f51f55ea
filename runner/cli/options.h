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

namespace cli {

// A command line that asks for what does not exist: kUsage.
Error Usage(std::string what, std::string hint = {});

// One option, as a person meets it.
struct OptionSpec {
  std::string_view name;      // Kebab-case, without the dashes.
  std::string_view value;     // What stands for its value in help: "FILE". Empty: a switch.
  std::string_view fallback;  // What holds when it is not given, as one would type it; or empty.
  std::string_view doc;       // Sentences.
  bool repeatable = false;    // In the action: one value per line.
};

// How the text of an option becomes a member of run::Request.
struct Text {
  std::string run::Request::*member;
};
struct Duration {
  int64_t run::Request::*member;  // Seconds.
  bool may_be_off;
};
struct Size {
  int64_t run::Request::*member;  // Bytes.
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
using Field = std::variant<Text, Duration, Size, Count, Cpus, Dollars, Switch, Secrets, Providers,
                           Texts, Variables>;

struct RunOption {
  OptionSpec spec;
  Field field;
};

inline constexpr auto kRunOptions = std::to_array<RunOption>({
    {{"agent", "NAME", "command", "Who works: `claude-code`, or `command` for any program."},
     Text{&run::Request::agent}},
    {{"prompt", "TEXT", "", "The task. It never passes through a shell."},
     Text{&run::Request::prompt}},
    {{"prompt-file", "FILE", "", "A file with the task, in place of `prompt`."},
     Text{&run::Request::prompt_file}},
    {{"model", "NAME", "", "The model; without it, the agent's own default."},
     Text{&run::Request::model}},
    {{"workdir", "DIR", ".",
      "The checkout, or a directory in it, which is then all that the agent sees of it; policy and "
      "configuration are those of the repository's top. The agent works on an overlay of it; the "
      "directory itself stays as it is."},
     Text{&run::Request::workdir}},
    {{"policy", "FILE", "",
      "A policy file, in place of the repository's `.agentic-ci/openshell-policy.yml`; without "
      "either, the built-in default holds."},
     Text{&run::Request::policy_file}},
    {{"policy-ref", "REF", "",
      "Where the repository's policy and configuration are read from; without it, the commit of "
      "the "
      "base that the event names, and outside continuous integration `HEAD`. `worktree` reads the "
      "checkout itself, which a pull request can change. Must be given in a continuous integration "
      "other than those of GitHub, Gitea and Forgejo."},
     Text{&run::Request::policy_ref}},
    {{"keep-policy", "", "",
      "The file of `policy` is read again when the run is sent SIGUSR1, and what it says of the "
      "network holds at once. With this, a file that is not valid then changes nothing; without "
      "it, nothing passes until one is."},
     Switch{&run::Request::keep_policy}},
    {{"image", "REF", "",
      "The image that the agent runs in: `[HOST/]REPOSITORY[:TAG][@DIGEST]`, `oci:DIRECTORY` or "
      "`docker-archive:FILE`. Nothing of it is unpacked before its signature is verified. Without "
      "it, the sandbox shows the host's own programs, read-only."},
     Text{&run::Request::image}},
    {{"image-key", "FILE", "",
      "The public key (PEM) that must have signed the image, in place of what the repository's "
      "configuration says."},
     Text{&run::Request::image_key}},
    {{"image-identity", "ID", "",
      "Who must have signed the image without a key of their own: the identity in Sigstore's "
      "certificate, `*` and `**` as in paths. Goes with `image-issuer`."},
     Text{&run::Request::image_identity}},
    {{"image-issuer", "URL", "", "Who must have vouched for `image-identity`."},
     Text{&run::Request::image_issuer}},
    {{"image-bundle", "FILE", "",
      "A Sigstore bundle over the image's digest, beside what its registry has.", true},
     Texts{&run::Request::image_bundles}},
    {{"trusted-root", "FILE", "",
      "The Sigstore instance that is believed (`trusted_root.json`); without it, the "
      "configuration's, else the public one as of this version."},
     Text{&run::Request::trusted_root}},
    {{"insecure-registry", "HOST", "",
      "A registry that is asked without TLS: one of this machine, or any other that is given "
      "twice.",
      true},
     Texts{&run::Request::insecure_registries}},
    {{"ca-file", "FILE", "",
      "The certificates (PEM) that services on the network are verified with; without it, the "
      "system's."},
     Text{&run::Request::ca_file}},
    {{"timeout", "DURATION", "20m", "How long the agent may run: `90s`, `20m`, `1h30m`."},
     Duration{&run::Request::timeout_s, false}},
    {{"idle-timeout", "DURATION", "off", "How long the agent may be silent."},
     Duration{&run::Request::idle_timeout_s, true}},
    {{"memory", "SIZE", "4GiB", "How much memory the sandbox may use."},
     Size{&run::Request::memory_bytes}},
    {{"cpus", "NUMBER", "all", "How many processors the sandbox may keep busy, such as `1.5`."},
     Cpus{&run::Request::cpus}},
    {{"pids", "NUMBER", "1024", "How many processes and threads the sandbox may have."},
     Count{&run::Request::pids}},
    {{"disk", "SIZE", "8GiB", "How much the sandbox may write."}, Size{&run::Request::disk_bytes}},
    {{"output", "SIZE", "64MiB", "How much the agent may print."},
     Size{&run::Request::output_bytes}},
    {{"runner-cpu", "DURATION", "5m",
      "How much processor time agentic-ci itself, its gateway most of all, may spend on what the "
      "agent makes it do."},
     Duration{&run::Request::runner_cpu_s, false}},
    {{"max-tokens", "NUMBER", "",
      "How many tokens models may be given and give, cached ones included; without it, what the "
      "repository's configuration says."},
     Count{&run::Request::max_tokens}},
    {{"max-cost", "DOLLARS", "",
      "What the models may cost, such as `2.50`; one whose price is not known is refused then."},
     Dollars{&run::Request::max_cost_usd}},
    {{"max-requests", "NUMBER", "", "How many requests models may be sent."},
     Count{&run::Request::max_requests}},
    {{"secret", "NAME[=VARIABLE]@HOST", "",
      "A credential for HOST alone: the sandbox sees a placeholder in NAME, and the gateway puts "
      "the value of this process's VARIABLE (or NAME) into requests to HOST.",
      true},
     Secrets{&run::Request::secrets}},
    {{"provider", "NAME[=VARIABLE]", "",
      "A service whose credential the gateway puts where it belongs: `anthropic`, `openai`, "
      "`gemini`, `github`, `gitlab`, `vertex`, `bedrock`, or `generic` for a bearer token at "
      "`API_BASE_URL`. Its value is this process's VARIABLE, or the usual one of that service.",
      true},
     Providers{&run::Request::providers}},
    {{"env", "NAME=VALUE", "",
      "A variable for the agent; nothing else of this process's environment enters the sandbox.",
      true},
     Variables{&run::Request::env}},
    {{"report-dir", "DIR", "agentic-ci-report", "Where the report is written."},
     Text{&run::Request::report_dir}},
    {{"apply", "", "", "When the run succeeded, put the judged changes into the checkout."},
     Switch{&run::Request::apply}},
    {{"plan-only", "", "", "Print what would be done, and start nothing."},
     Switch{&run::Request::plan_only}},
    {{"json", "", "", "Print the result as one JSON object."}, Switch{&run::Request::json}},
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

// A request with every default of the table.
run::Request DefaultRequest();

// Sets what `option` stands for from `text`. A repeatable one is appended to. Fails with kUsage and
// "--NAME: what is wrong".
Status SetOption(const RunOption& option, std::string_view text, run::Request* request);

// What the table alone cannot say: options that exclude each other. kUsage.
Status CheckRequest(const run::Request& request);

}  // namespace cli
