// SPDX-License-Identifier: Apache-2.0
// Everything decided before the first process starts: from the event to the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/harness.h"
#include "base/result.h"
#include "change/repository.h"
#include "gateway/gateway.h"
#include "policy/load/parse.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/image.h"
#include "run/policy_source.h"
#include "run/recorder.h"
#include "run/run.h"
#include "run/trusted/config.h"
#include "run/trusted/trusted_file.h"
#include "sandbox/sandbox.h"

namespace run {

// The checkout this run works on.
struct Checkout {
  std::string path;                              // Canonical; may be below the repository's top.
  std::optional<change::Repository> repository;  // None: a directory without git.
  const change::Repository* git() const { return repository ? &*repository : nullptr; }
  // All that a pull request may have written.
  const std::string& top() const { return repository ? repository->top() : path; }
};

// Everything decided before the first process starts.
struct Plan {
  Checkout checkout;
  TrustedRef ref;
  std::optional<RunImage> image;
  policy::ParseContext policy_context;
  LoadedPolicy policy;
  std::vector<policy::NetworkPolicy> ecosystems;  // In `policy`, and not in its file.
  Config config;
  gateway::BudgetLimits budget;
  AgentProgram program;
  agent::AgentPlan agent;
  RunCredentials credentials;
  std::string ca_bundle_pem;

  const RunImage* in_image() const { return image ? &*image : nullptr; }
};

sandbox::SandboxLimits LimitsOf(const Request& request);

// event -> trust -> image -> policy -> agent -> secrets: no agent and no gateway yet.
Result<Plan> PrepareRun(Request request, Recorder& recorder);

}  // namespace run
