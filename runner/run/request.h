// SPDX-License-Identifier: Apache-2.0
// A request for a run: the command line (cli/options.h) as values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attest/signer.h"
#include "base/result.h"
#include "sandbox/isolation.h"
#include "sandbox/limit/limit.h"

namespace run {

// `--secret NAME[=ENVVAR]@HOST`: the sandbox sees a placeholder in `name`; the gateway puts the
// value of the host's `variable` in, in requests to `host` only.
struct SecretBinding {
  std::string name;
  std::string variable;
  std::string host;
};

// `--provider NAME[=ENVVAR]`: the credential of a service that the gateway knows how to place
// (policies/providers/). `variable` replaces the provider's first, or is empty.
// `--provider NAME:KEY=VALUE,...`: the job's identity in place of it, as these values describe it.
struct ProviderBinding {
  std::string name;
  std::string variable;
  std::vector<std::pair<std::string, std::string>> identity = {};
};

class Enclosure;
struct Plan;
// The variable with the token that budgets across runs are counted with, where it is not the one
// that the forge is asked with.
inline constexpr char kBudgetTokenVariable[] = "AGENTIC_CI_BUDGET_TOKEN";

struct Request;
class Recorder;
struct Stage;

// A place where agents run, as a value. Those that there are: backend/open/.
struct Backend {
  std::string_view name = "native";  // The value of --backend.
  // Programs and images are those of this machine, and the gateway is agentic-ci's own. Otherwise,
  // the place has both by itself.
  bool local = true;
  // While changes are collected, signals and limits end that by themselves.
  bool cancels = false;
  // Fails with kUnsupported if an option was given that this place cannot enforce.
  Status (*check)(const Request&) = nullptr;
  std::unique_ptr<Enclosure> (*make)(const Stage&) = nullptr;
  // Returns what --plan-only prints.
  Result<std::string> (*describe)(const Request&, Plan&, Recorder&) = nullptr;
};

// The limits of the sandbox, and whether the run is attested, are among what is asked for.
struct Request : sandbox::SandboxLimits, attest::Wanted {
  std::string task;  // The task of the configuration; if empty, see run/task_request.h.
  sandbox::Isolation isolation = sandbox::Isolation::kNamespaces;
  Backend backend;            // The next four are for another than agentic-ci's own.
  std::string gateway;        // A URL, or a name that OpenShell knows; if empty, one of its own.
  std::string gateway_tls;    // A directory.
  std::string approval_mode;  // "manual", "auto" or empty.
  std::vector<std::string> gateway_providers;  // Held by the gateway, by their names there.
  std::string agent = "command";
  std::string prompt;
  std::string prompt_file;  // Exclusive with `prompt`.
  std::string model;        // If empty, the agent's own default.
  std::string workdir = ".";
  std::string policy_file;  // If empty, the repository's, at policy_ref.
  std::string policy_path;  // The path of that one; if empty, kPolicyPath.
  // A file that takes the place of `policy_file` once it is there; may be empty.
  std::string replaced_policy;
  // If empty, the event's base, else HEAD; "worktree" for the working tree.
  std::string policy_ref;
  bool keep_policy = false;  // PolicyReload::Rules::keeps_valid.
  // The authorities that the gateway trusts upstream; if empty, the system's bundle.
  std::string ca_file;
  std::string gitlab_issuer;  // The issuer whose ID tokens count; if empty, CI_SERVER_URL.
  std::string gitlab_keys;    // A file with its keys; if empty, those that it publishes.
  bool gitlab_trust_variables = false;  // Trusts them if there is no token.
  std::string image;                    // If empty, the host's own root.
  std::string image_key;  // These replace what the configuration says of images' signers.
  std::string image_identity;
  std::string image_issuer;
  std::vector<std::string> image_bundles;  // Files: Sigstore bundles that a person brought along.
  std::string trusted_root;  // A file; if empty, the configuration's, or the embedded.
  std::vector<std::string> insecure_registries;  // image::SourceOptions::insecure_registries.
  std::string report_dir = "agentic-ci-report";
  std::string learn;  // The file to which refusals by the policy are added; may be empty.
  int64_t timeout_s = 0;
  int64_t idle_timeout_s = 0;  // 0 if off.
  int64_t output_bytes = 0;
  int64_t host_bytes = 0;    // The bytes to and from each host, through the gateway; 0 if off.
  int64_t runner_cpu_s = 0;  // The processor time of the gateway and the supervisor together.
  std::vector<std::string> watched_texts = {};  // Recorded when they are sent to models.
  std::vector<std::string> sent_texts = {};     // Recorded when they are sent to any server.
  std::string model_host = {};   // The host of the model that a command uses; canonical, or empty.
  uint16_t model_port = 0;       // The port on `model_host`; 0 for any.
  bool record_programs = false;  // Each that is started (report/event_lines.h).
  bool record_files = false;     // What the agent left (report/event_lines.h).
  int64_t max_tokens = 0;        // The tokens of models, in and out; if 0, as configured.
  double max_cost_usd = 0;       // The cost; if 0, as configured.
  int64_t max_requests = 0;      // The requests to models; if 0, as configured.
  std::string budget_file;       // Where the ledger of budgets across runs is; empty: the forge.
  std::vector<std::string>
      events_to;             // Where the run's records are sent (telemetry/event_target.h).
  bool times_lines = false;  // When the agent's lines came is kept, for its telemetry.
  std::vector<SecretBinding> secrets;
  std::vector<ProviderBinding> providers;
  std::vector<std::pair<std::string, std::string>> env;
  std::string post;     // The task's: what is posted of the report, "comment,review"; or empty.
  std::string fail_on;  // The mildest finding of the agent that fails the run, or "never".
  bool apply = false;
  bool apply_ignored = false;  // The files that git ignores, too.
  bool plan_only = false;
  bool json = false;
  bool quiet = false;
  std::vector<std::string> command;  // Behind `--`.
  std::vector<std::string> given;    // Names of the options that were given: no task sets them.
};

// The rules of the options' texts: the command line knows them, and a task of the configuration
// needs them.
struct OptionRules {
  // Sets the option `name` of `run` from its text. Fails with kUsage.
  std::function<Status(std::string_view name, std::string_view text, Request*)> set;
  // Refuses options that exclude each other. Fails with kUsage.
  std::function<Status(const Request&)> check;
};

}  // namespace run
