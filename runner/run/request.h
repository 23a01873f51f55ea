// SPDX-License-Identifier: Apache-2.0
// What a person asked one run to do: the command line (cli/options.h) as values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace run {

// `--secret NAME[=ENVVAR]@HOST`: the sandbox sees a placeholder in `name`; the gateway puts the
// value of the host's `variable` in, in requests to `host` only.
struct SecretBinding {
  std::string name;
  std::string variable;
  std::string host;
};

// `--provider NAME[=ENVVAR]`: the credential of a service that the gateway knows how to place
// (policies/providers/). `variable`: in place of the provider's first; or empty.
struct ProviderBinding {
  std::string name;
  std::string variable;
};

struct Request {
  std::string isolation = "namespaces";  // Or "landlock".
  std::string agent = "command";
  std::string prompt;
  std::string prompt_file;  // Exclusive with `prompt`.
  std::string model;        // Empty: the agent's own default.
  std::string workdir = ".";
  std::string policy_file;   // Empty: the repository's, at policy_ref.
  std::string policy_ref;    // Empty: the event's base, else HEAD; "worktree": the working tree.
  bool keep_policy = false;  // PolicyReload::Rules::keeps_valid.
  std::string ca_file;       // Empty: the system's bundle. What the gateway trusts upstream.
  std::string image;         // Empty: the host's own root.
  std::string image_key;     // These replace what the configuration says of images' signers.
  std::string image_identity;
  std::string image_issuer;
  std::vector<std::string> image_bundles;  // Files: Sigstore bundles that a person brought along.
  std::string trusted_root;                // A file; empty: the configuration's, or the embedded.
  std::vector<std::string> insecure_registries;  // image::SourceOptions::insecure_registries.
  std::string report_dir = "agentic-ci-report";
  int64_t timeout_s = 0;
  int64_t idle_timeout_s = 0;  // 0: off.
  int64_t memory_bytes = 0;
  double cpus = 0;  // 0: all.
  int64_t pids = 0;
  int64_t disk_bytes = 0;
  int64_t output_bytes = 0;
  int64_t runner_cpu_s = 0;  // Of the gateway and the supervisor together.
  int64_t max_tokens = 0;    // Of models, in and out; 0: what the configuration says.
  double max_cost_usd = 0;   // Likewise.
  int64_t max_requests = 0;  // To models; likewise.
  std::vector<SecretBinding> secrets;
  std::vector<ProviderBinding> providers;
  std::vector<std::pair<std::string, std::string>> env;
  bool apply = false;
  bool plan_only = false;
  bool json = false;
  std::vector<std::string> command;  // Behind `--`.
};

}  // namespace run
