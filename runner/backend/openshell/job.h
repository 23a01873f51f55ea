// SPDX-License-Identifier: Apache-2.0
// OpenShell as a place where agents run: `--backend openshell`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/openshell/gateway.h"
#include "backend/openshell/sandbox.h"
#include "base/result.h"
#include "change/given/given_files.h"
#include "run/enclosure.h"
#include "run/image.h"

namespace openshell {

// Fails with kUnsupported if an option was given that OpenShell cannot enforce. Nothing is ignored.
Status CheckOptions(const run::Request& request);

// A sandbox of OpenShell as a place where an agent runs. Deletes it when it is destroyed, and notes
// what could not be deleted.
class Job final : public run::Enclosure {
 public:
  explicit Job(const run::Stage& stage) : stage_(stage) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() override;

  // Has the gateway and the sandbox ready: policy in force, checkout uploaded.
  Status Start() override;
  Result<run::AgentEnd> Attend() override;
  Result<run::RunSigns> CompleteRecords(run::AgentEnd* end) override;
  Result<std::optional<change::ChangedTree>> Collect(run::AgentEnd* end) override;
  void Explain(const run::AgentEnd& end, report::OutcomeRecord* outcome) const override;

  // Returns the variables of everything that runs in the sandbox, beside those that OpenShell sets.
  Variables Environment() const;

  // Replaces the network rules of the sandbox's policy by those of the policy `text`, which errors
  // call `shown`, and returns the SHA-256 of that. The records say so. If it is not accepted, the
  // policy before stays in force. Fails as Sandbox::ReplacePolicy() and policy::CheckLiveUpdate()
  // do; with kInvalid and the place for what cannot be parsed; with kUsage where the policy is not
  // of a file of `--policy`.
  Result<std::string> ReplacePolicy(const std::string& text, const std::string& shown);

  // Returns what has changed so far; nothing is noted. Fails with kIo, and with what the sandbox
  // says, if not all of the checkout can be read.
  Result<change::ChangeSet> Changes();

  const Gateway& gateway() const { return *gateway_; }
  const Sandbox& sandbox() const { return *sandbox_; }
  // Returns a signalfd: what becomes readable there ends the run.
  int signals() const { return stage_.signals.caught.get(); }

 private:
  // Fails with kUnsupported for what the plan demands and OpenShell cannot enforce.
  Status CheckPlan() const;
  // Returns `policy` as `after_untrusted` narrows it.
  policy::Policy Narrowed(const policy::Policy& policy) const;
  Status CheckImage();
  Status CheckProviders() const;
  Result<SandboxRequest> RequestOf();
  std::vector<sandbox::Control> Controls() const;
  bool IsReachable(run::AgentEnd* end);
  bool IsThere(run::AgentEnd* end);
  Status TakeEvents();
  Status MissChanges(Error why, run::AgentEnd* end);
  // Fetches the checkout as it is in the sandbox now, into a new directory.
  Result<change::ChangedTree> Fetch();
  Result<run::LoadedPolicy> PutInForce(const std::string& text, const std::string& shown);
  // Writes to the report's records.
  Status Record(std::string json, const std::string& shorthand, int64_t time_ms);
  void NoteProposals();
  void KeepLog() const;

  const run::Stage stage_;
  std::optional<run::CheckedImage> image_;  // The image, if it had to be verified.
  std::vector<std::string> hidden_;         // Paths of which the sandbox has no copy.
  std::unique_ptr<Gateway> gateway_;
  std::optional<Sandbox> sandbox_;
  std::optional<policy::Policy> replaced_;  // What took the place of the plan's policy.
  timespec began_{};  // When the sandbox's copy of the checkout began to be made.
  change::GivenFiles given_;
  bool reachable_ = false;     // After the agent's end: the sandbox can be asked for what is in it,
  bool ended_ = false;         // and none of the agent's processes runs any more.
  Fd fetched_;                 // The directory of Fetch().
  std::optional<Error> lost_;  // Why the gateway cannot be asked any more, where it said.
};

// Returns the row of `--backend openshell`.
run::Backend BackendOfRuns();

}  // namespace openshell
