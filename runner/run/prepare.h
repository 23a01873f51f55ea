// SPDX-License-Identifier: Apache-2.0
// Everything that is decided before the first process starts, from the event to the agent's command
// line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/harness.h"
#include "base/result.h"
#include "base/shared_text.h"
#include "change/repository.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "gateway/gateway.h"
#include "policy/load/parse.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/image.h"
#include "run/learn.h"
#include "run/policy_source.h"
#include "run/recorder.h"
#include "run/run.h"
#include "run/shown/git_files.h"
#include "run/task_request.h"
#include "run/trusted/config.h"
#include "run/trusted/trusted_file.h"
#include "sandbox/sandbox.h"

namespace run {

// The checkout this run works on.
struct Checkout {
  std::string path;                              // Canonical; may be below the repository's top.
  std::optional<change::Repository> repository;  // nullopt for a directory without git.
  // The path at which tier `namespaces` shows it, if that is another.
  std::string shown_at = {};
  const change::Repository* git() const { return repository ? &*repository : nullptr; }
  // Returns all that a pull request may have written.
  const std::string& top() const { return repository ? repository->top() : path; }
};

// Everything decided before the first process starts.
struct Plan {
  Checkout checkout;
  TrustedRef ref;
  std::optional<RunImage> image;
  policy::ParseContext policy_context;
  LoadedPolicy policy;
  bool only_reads = false;  // `policy` was narrowed: its file is not read again.
  std::vector<policy::NetworkPolicy> ecosystems;  // In `policy`, and not in its file.
  Config config;                                  // With the task's own rules for paths.
  gateway::BudgetLimits budget;
  TaskChecks checks;                                 // The task's checks; may be empty.
  std::optional<LoadedPolicy> check_policy;          // If nullopt, `policy` holds for them too.
  int64_t check_timeout_s = 0;                       // The time for each; if 0, the run's.
  std::optional<agent::AgentDescription> described;  // nullopt if the agent is `command`.
  AgentProgram program;
  agent::AgentPlan agent;
  RunCredentials credentials;
  SharedText ca_bundle_pem;
  // The files of the checkout that the agent is given otherwise than they lie on the disk (git's
  // own files apart): instructions of the trusted commit, and nothing that holds credentials.
  std::vector<sandbox::WorkspaceFile> replaced;
  std::vector<std::string> notes;  // About these.
  GitFiles git;
  std::string foreign;  // LeftFiles::foreign
  std::string
      merged;  // The base branch's commit that the agent merged, once it has ended; or empty.
  std::optional<LearnFile> learn;  // `--learn`.

  const RunImage* in_image() const { return image ? &*image : nullptr; }
  const agent::AgentDescription* description() const { return described ? &*described : nullptr; }
};

// Prepares a run, event -> trust -> task -> image -> policy -> agent -> secrets: no agent and no
// gateway yet. Adds the task's part to `request`.
Result<Plan> PrepareRun(const OptionRules& rules, Request* request, Recorder& recorder);

// Opens the checkout, and the repository that it is in.
Result<Checkout> OpenCheckout(const std::string& workdir);

// The checkout, and the configuration of its trusted commit.
struct OpenedConfig {
  Checkout checkout;
  TrustedRef ref;
  Config config;
  forge::EventText text;  // Read where there are tasks, or without a configuration.
  // What a run outside of CI works on, in git; read where there are tasks.
  std::optional<change::HeadFacts> local;
  // Borrows this and `event`.
  TaskSources sources(const forge::Event& event) const {
    return {config, event, text, checkout.git(), ref, local ? &*local : nullptr};
  }
};
Result<OpenedConfig> OpenConfig(const forge::Event& event, const OptionRules& rules,
                                const Request& request);

// The policy of a run that would be started here, with what its configuration opens besides.
struct ForeseenPolicy {
  LoadedPolicy policy;
  std::vector<std::string> notes;  // What was assumed, and what is not known before a run.
};
// Foresees it without an event and without an image: `request` may name the task, else the first
// one counts, unless an agent is given. Asks the installed tools for their registries. Fails as
// OpenConfig(), TakeTask(), FindPolicy() and LoadPolicy() do.
Result<ForeseenPolicy> ForeseePolicy(const OptionRules& rules, Request request);

// Judges the trust as PrepareRun() does, for runs that are started without this process's event.
// Fails as reading the event, the trusted commit's configuration and the forge does.
Result<Trust> FindTrust(const OptionRules& rules, const Request& request);

}  // namespace run
