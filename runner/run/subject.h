// SPDX-License-Identifier: Apache-2.0
// What a run is about, by its event and the trusted commit: the checkout, the configuration, the
// task, and who may start it. The first stage of a run's preparation (run/prepare.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/harness.h"
#include "base/result.h"
#include "change/repository.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "gateway/budget/budget_limits.h"
#include "run/budget.h"
#include "run/recorder.h"
#include "run/request.h"
#include "run/task_request.h"
#include "run/trusted/config.h"
#include "run/trusted/trust.h"
#include "run/trusted/trusted_file.h"

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

struct Subject {
  Checkout checkout;
  TrustedRef ref;
  Config config;                                     // With the task's own rules for paths.
  TaskChecks checks;                                 // The task's checks; may be empty.
  int64_t check_timeout_s = 0;                       // The time for each; if 0, the run's.
  std::optional<agent::AgentDescription> described;  // nullopt if the agent is `command`.
  gateway::BudgetLimits budget;
  std::unique_ptr<Allowance> allowance;  // Null without a budget across runs.

  const agent::AgentDescription* description() const { return described ? &*described : nullptr; }
};

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

// Takes what `opened` says of the task that `request` or the event chooses; adds the task's part to
// `request`. Fails as TakeTask() does.
Result<Subject> TakeSubject(const forge::Event& event, OpenedConfig opened,
                            const OptionRules& rules, Request* request);

// A run that may go on.
struct Admitted {
  forge::Event event;
  Trust trust;
  Subject subject;
};
// Reads the event and what the trusted commit says of it. Who may not start the run ends it here,
// before anything else can be wrong with it: a failure that a stranger causes is never posted.
Result<Admitted> AdmitRun(const OptionRules& rules, Request* request, Recorder& recorder);

// Judges the trust as AdmitRun() does, for runs that are started without this process's event.
// Fails as reading the event, the trusted commit's configuration and the forge does.
Result<Trust> FindTrust(const OptionRules& rules, const Request& request);

}  // namespace run
