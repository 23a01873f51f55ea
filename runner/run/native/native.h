// SPDX-License-Identifier: Apache-2.0
// agentic-ci's own sandbox as a place where agents run: its gateway, and namespaces or Landlock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "caller/connection_owners.h"
#include "change/capture.h"
#include "gateway/gateway.h"
#include "run/credentials.h"
#include "run/enclosure.h"
#include "run/native/policy_reload.h"
#include "run/native/supervise.h"
#include "run/request.h"
#include "sandbox/sandbox.h"

namespace run {

class NativeEnclosure final : public Enclosure {
 public:
  explicit NativeEnclosure(const Stage& stage) : stage_(stage) {}

  Status Start() override;
  Result<AgentEnd> Attend() override;
  Result<RunSigns> CompleteRecords(AgentEnd* end) override;
  Result<std::optional<change::ChangedTree>> Collect(AgentEnd* end) override;
  void RemoveTraces() const override { sandbox_->RemoveTraces(); }
  std::function<void()> TakeRemoval() override;

  // For a driver that does the turns itself, in place of Attend(): starts the agent. The supervisor
  // is this enclosure's; once it has ended, Finish() is to be called.
  Result<Supervisor*> StartAgent(SupervisorHooks hooks);
  Result<AgentEnd> Finish();
  // Between the two: puts another policy in the place of `--policy`'s, by the same rules as when
  // that file is read again, and returns its SHA-256. `keep` is called once it was checked. If
  // anything fails, the policy stays in force.
  Result<std::string> ReplacePolicy(const PolicyReload::Text& given,
                                    const std::function<Status()>& keep);

  // Likewise: Supervisor::NarrowedBy(), and Gateway::Narrow().
  const std::string& NarrowedBy() { return supervisor_->NarrowedBy(); }
  Status Narrow(std::string_view by) { return gateway_->Narrow(by); }

  const Stage& stage() const { return stage_; }
  // Another instance may be put in its place (Sandbox::Replace()).
  sandbox::Sandbox& sandbox() const { return *sandbox_; }

 private:
  void NoteGit();

  const Stage stage_;
  // Leaving early at any line is safe: owners are destroyed in reverse, so the sandbox is dead
  // before the gateway goes away.
  std::vector<KeptSecret> secrets_;
  Fd identity_answers_;
  std::optional<gateway::Gateway> gateway_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
  std::optional<caller::ConnectionOwners> owners_;
  std::optional<PolicyReload> reload_;
  std::optional<Supervisor> supervisor_;
  change::GivenFiles given_;
};

// Returns the row of `--backend native`.
Backend NativeBackend();

}  // namespace run
