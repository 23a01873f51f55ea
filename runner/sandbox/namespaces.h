// SPDX-License-Identifier: Apache-2.0
// The sandbox of tier namespaces: a file tree and networks of its own, which can be renewed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/thread.h"
#include "sandbox/sandbox.h"
#include "sandbox/tree.h"

namespace sandbox {

class NamespaceSandbox final : public Sandbox {
 public:
  // As Sandbox::Start(). `programs` as in HostResources.
  static Result<std::unique_ptr<Sandbox>> Start(SandboxPlan plan, AgentInput input, Cgroup cgroup,
                                                Fd programs);
  ~NamespaceSandbox() override { Kill(); }

  void Kill() override;
  bool renewable() const override {
    return user_.valid() && plan_ && !plan_->namespaces().layers_on_disk;
  }
  Result<Renewal> Renew(AgentInput input) override;
  Status Replace(Renewal renewal) override;
  Inside inside() const override {
    return {plan_.get(), user_.get(), mounts_.get(), layers_.get()};
  }
  Inside InsideOf(const Renewal& renewal) const override {
    return {plan_.get(), user_.get(), renewal.mounts.get(), renewal.layers.get()};
  }
  std::optional<std::vector<pid_t>> InnerProcesses() const override;
  Result<Fd> OpenRoot() const override;

 private:
  using Sandbox::Sandbox;

  std::string StartMessage() override;
  ConnectWatch WatchOf(Fd listener) override { return ConnectWatch(std::move(listener)); }
  std::optional<std::vector<pid_t>> Members() const override { return std::nullopt; }
  int64_t SocketBytes(int64_t /*left*/) override { return sockets_.Measure(); }
  int64_t SegmentBytes() const override;
  Result<std::string> AwaitGatewaySockets(Deadline deadline);
  Result<DiskLayers> MakeDiskLayers(const SandboxPlan& plan);
  Status CopyCheckout(const std::string& why, SandboxPlan* plan);
  Result<std::vector<Fd>> OpenSources(SandboxPlan* plan);

  std::string watched_filter_;   // Sent with ControlKind::kStartAgent.
  std::map<uid_t, Fd> id_maps_;  // User namespaces that map an owner to the agent's user.
  Fd segments_;
  Fd user_;  // Its namespaces.
  Fd network_;
  Fd mounts_;
  sys::BackgroundTask closing_;  // Closes the descriptors of the tree that Replace() has replaced.
};

}  // namespace sandbox
