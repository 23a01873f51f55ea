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
#include "policy/load/parse.h"
#include "run/credentials.h"
#include "run/environment.h"
#include "run/image.h"
#include "run/learn.h"
#include "run/policy_source.h"
#include "run/recorder.h"
#include "run/run.h"
#include "run/shown/git_files.h"
#include "run/subject.h"
#include "sandbox/sandbox.h"

namespace run {

// The programs of a run.
struct Tools {
  std::optional<RunImage> image;
  AgentProgram program;

  const RunImage* in_image() const { return image ? &*image : nullptr; }
};

// What the agent may reach.
struct Rules {
  policy::ParseContext policy_context;
  LoadedPolicy policy;
  std::vector<policy::NetworkPolicy> ecosystems;  // In `policy`, and not in its file.
  std::optional<LoadedPolicy> check_policy;       // If nullopt, `policy` holds for checks too.
  bool only_reads = false;  // `policy` was narrowed: its file is not read again.
};

// What the agent is given of the checkout.
struct Shown {
  // The files of the checkout that the agent is given otherwise than they lie on the disk (git's
  // own files apart): instructions of the trusted commit, and nothing that holds credentials.
  std::vector<sandbox::WorkspaceFile> replaced;
  GitFiles git;
  std::string foreign;             // LeftFiles::foreign
  std::vector<std::string> notes;  // About these.
};

// Everything decided before the first process starts. Each part is made from those before it.
struct Plan : Subject, Tools, Rules, Shown {
  RunCredentials credentials;
  agent::AgentPlan agent;
  SharedText ca_bundle_pem;
  policy::UntrustedTexts untrusted;  // Found only where the policy asks for them.
  std::optional<LearnFile> learn;    // `--learn`.
  // The base branch's commit that the agent merged, once it has ended; or empty.
  std::string merged;
};

// Prepares a run, subject -> tools -> rules -> credentials -> agent -> what it is shown: no agent
// and no gateway yet. Adds the task's part to `request`.
Result<Plan> PrepareRun(const OptionRules& rules, Request* request, Recorder& recorder);

// The policy of a run that would be started here, with what its configuration opens besides.
struct ForeseenPolicy {
  LoadedPolicy policy;
  std::vector<std::string> notes;  // What was assumed, and what is not known before a run.
};
// Foresees it without an event and without an image: `request` may name the task, else the first
// one counts, unless an agent is given. Asks the installed tools for their registries. Fails as
// OpenConfig(), TakeTask(), FindPolicy() and LoadPolicy() do.
Result<ForeseenPolicy> ForeseePolicy(const OptionRules& rules, Request request);

}  // namespace run
