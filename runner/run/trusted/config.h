// SPDX-License-Identifier: Apache-2.0
// `.agentic-ci/config.yml`: a repository's settings for its runs, in addition to the policy, read
// from the same trusted commit. docs/reference/config.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/description.h"
#include "base/result.h"
#include "change/protected_path.h"
#include "gateway/budget/price_list.h"
#include "gateway/credential/provider_identity.h"
#include "image/trust.h"
#include "policy/model/after_untrusted.h"
#include "policy/model/hosted_tools.h"
#include "run/trusted/gates.h"
#include "run/trusted/task.h"
#include "run/trusted/trusted_file.h"
#include "sandbox/limit/control.h"
#include "spending/ledger.h"

namespace run {

inline constexpr char kConfigPath[] = ".agentic-ci/config.yml";

struct Config {
  // `budget`: what all runs together may spend.
  struct Budget {
    spending::Limits limits;
    bool warns = false;  // Where it is not known what was spent, a run starts all the same.
  };

  bool absent = false;  // There is no such file.
  std::string sha256;   // Hex digest of its bytes; empty without one.
  // Zero: not said. The command line's own values replace them.
  int64_t max_tokens = 0;
  double max_cost_usd = 0;
  int64_t max_requests = 0;
  int64_t requests_per_minute = 0;
  Budget budget;
  std::vector<std::string> models;  // The only ones that may be asked; empty for any.
  gateway::PriceList prices;        // Before the built-in ones.
  // Ecosystems whose package registries are opened, read-only.
  std::vector<std::string> ecosystems;
  // What a policy that does not say allows of models' providers.
  std::vector<policy::HostedAllowance> hosted_tools;
  policy::AfterUntrusted after_untrusted;  // For a policy that does not say.
  // The identities of the job, by the provider that takes one.
  std::vector<std::pair<std::string, gateway::IdentityValues>> identities;
  image::TrustPolicy trust;                     // The signers of images.
  std::vector<std::string> mirrors;             // image::SourceOptions::mirrors.
  Gates gates;                                  // The rules on what a patch may contain.
  std::vector<std::string> bots;                // Applications that may start runs: JudgeActors().
  bool fork_models = false;                     // `forks: model`: JudgeForkModel().
  std::vector<sandbox::ControlName> require;    // What must be enforced.
  std::vector<agent::AgentDescription> agents;  // Beside those that are built in.
  std::vector<Task> tasks;                      // In the file's order.
};

// The amounts of `budget`, by their keys.
struct BudgetAmount {
  std::string_view key;
  double spending::Limits::*member;
  std::string_view doc;
};
inline constexpr auto kBudgetAmounts = std::to_array<BudgetAmount>({
    {"per_day", &spending::Limits::per_day, "US dollars for all runs that start on one day (UTC)."},
    {"per_pull_request", &spending::Limits::per_pull_request,
     "US dollars for all runs for one pull request."},
});
// The values of `unknown` in it, the default first.
inline constexpr auto kUnknownAnswers = std::to_array<std::string_view>({"refuse", "warn"});
// Returns all keys of `budget`.
std::vector<std::string_view> BudgetKeys();

// Returns the repository's configuration at `ref`; without a file, one that says nothing.
Result<Config> LoadConfig(const change::Repository* repository, const std::string& checkout,
                          const TrustedRef& ref, const ConfigChecks& checks);

// Parses the file. Fails with kInvalid and "file:line:col: error: what" for anything it does not
// know, for an empty file, and for an empty list or mapping that would be no limit: the first of
// `errors`, which has all of them, in no order, where it is not null.
Result<Config> ParseConfig(std::string_view text, const ConfigSource& source,
                           std::vector<Error>* errors = nullptr);

}  // namespace run
