// SPDX-License-Identifier: Apache-2.0
// One run on OpenShell, from event to outcome. The command line calls it in place of run/run.h for
// `--backend openshell`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/openshell/gateway.h"
#include "backend/openshell/sandbox.h"
#include "base/result.h"
#include "run/image.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/report_directory.h"
#include "run/request.h"
#include "run/supervise.h"

namespace openshell {

// Fails with kUnsupported if an option was given that OpenShell cannot enforce. Nothing is ignored.
Status CheckOptions(const run::Request& request);

// One run in a sandbox of OpenShell, from event to outcome, in three steps. What was made is
// removed when it is destroyed, wherever it stands then.
class Job {
 public:
  // All three are borrowed.
  Job(run::Request& request, run::ReportDirectory& directory, run::Recorder& recorder)
      : request_(request), directory_(directory), recorder_(recorder) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  // Prepares the run as a native one is prepared, and has the sandbox ready: policy in force,
  // checkout uploaded. `signals` (a signalfd) becoming readable ends it early.
  Status Begin(const run::OptionRules& rules, int signals);
  // Runs the agent that the request names.
  Result<run::AgentEnd> RunAgent(int signals);
  // Ends what runs, collects records and changes, judges them, and applies them where that is
  // asked for (`apply`) and they pass.
  Status Finish(run::AgentEnd end, bool apply);

  // Returns the variables of everything that runs in the sandbox, beside those that OpenShell sets.
  Variables Environment() const;

  // Returns what has changed so far; nothing is noted. Fails with kIo, and with what the sandbox
  // says, if not all of the checkout can be read.
  Result<change::ChangeSet> Changes();

  const Gateway& gateway() const { return *gateway_; }
  const Sandbox& sandbox() const { return *sandbox_; }

 private:
  Status CheckImage();
  Result<SandboxRequest> RequestOf();
  std::vector<sandbox::Control> Controls() const;
  bool IsReachable(run::AgentEnd* end);
  bool IsThere(run::AgentEnd* end);
  Result<run::RunSigns> TakeEvents(bool reachable, bool ended);
  Result<change::ChangeSet> TakeChanges(bool reachable, bool ended, run::AgentEnd* end);
  Status MissChanges(Error why, run::AgentEnd* end);
  Result<Fetched> Fetch(bool ended, Fd* root);
  change::ChangedTree TreeAt(int directory, const Fetched& fetched) const;
  void NoteProposals();

  run::Request& request_;
  run::ReportDirectory& directory_;
  run::Recorder& recorder_;
  std::optional<run::Plan> plan_;
  std::optional<run::CheckedImage> image_;  // The image, if it had to be verified.
  std::vector<std::string> hidden_;         // Paths of which the sandbox has no copy.
  std::unique_ptr<Gateway> gateway_;
  std::optional<Sandbox> sandbox_;
  timespec began_{};  // When the sandbox's copy of the checkout began to be made.
  change::GivenFiles given_;
  std::optional<Error> lost_;  // Why the gateway cannot be asked any more, where it said.
};

// Does what run::Run() does, for this backend.
Result<int> Run(run::Request request, const run::OptionRules& rules);

}  // namespace openshell
