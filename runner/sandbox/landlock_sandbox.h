// SPDX-License-Identifier: Apache-2.0
// The sandbox of tier landlock: a copy of the checkout among the host's processes, rules of the
// kernel, and a supervisor that makes its sockets (docs/threat-model.md says what it lacks).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/call/broker.h"
#include "sandbox/sandbox.h"

namespace sandbox {

class LandlockSandbox final : public Sandbox {
 public:
  // As Sandbox::Start(). `around` has the plan's `scratch`.
  static Result<std::unique_ptr<Sandbox>> Start(SandboxPlan plan, AgentInput input, Cgroup cgroup,
                                                HostResources around);
  ~LandlockSandbox() override { Kill(); }

  void Kill() override;
  Result<Fd> OpenRoot() const override;

 private:
  using Sandbox::Sandbox;

  std::string StartMessage() override;
  ConnectWatch WatchOf(Fd listener) override;
  std::optional<std::vector<pid_t>> Members() const override;
  int64_t SocketBytes(int64_t left) override;
  Result<int64_t> PrepareScratch(const SandboxPlan& plan);
  Result<int64_t> CopyWorkspace(const SandboxPlan& plan);
  Status OpenLoopbackSockets();

  BrokerSetup broker_;  // Until StartAgent().
  pid_t helper_ = -1;
};

}  // namespace sandbox
