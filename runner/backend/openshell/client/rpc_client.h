// SPDX-License-Identifier: Apache-2.0
// Gateways of OpenShell 0.1, asked by gRPC.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/openshell/client/client.h"
#include "codec/data/json.h"

namespace openshell {

class RpcConnection;
struct RpcMethod;

class RpcClient final : public Client {
 public:
  // `state` has the gateway's configuration, and what WriteWorkspace() wrote. Each call opens a
  // connection of its own.
  explicit RpcClient(std::string state, int cancel = -1)
      : state_(std::move(state)), cancel_(cancel) {}

  std::unique_ptr<Client> Uncancelled() const override;
  int cancel() const override { return cancel_; }
  Result<std::string> CheckAnswer(Deadline deadline) const override;
  Status Create(const SandboxSpec& spec, Deadline deadline) const override;
  Status LetPropose(const std::string& name) const override;
  Result<std::optional<SandboxFacts>> Find(const std::string& name,
                                           Deadline deadline) const override;
  Result<std::vector<SandboxFacts>> List(const std::string& key, const std::string& value,
                                         Deadline deadline) const override;
  Status Start(const std::string& name, Deadline deadline) const override;
  Status Delete(const std::string& name, Deadline deadline) const override;
  Result<Child> Exec(const std::string& name, const std::string& script, int input) const override;
  size_t input_bytes_max() const override;
  std::string WhyBroken(pid_t pid) const override;
  Status Put(const std::string& name, const std::string& from, const std::string& to,
             Deadline deadline) const override;
  Result<Child> FollowRecords(const std::string& name, int log, int said) const override;
  bool records_have_marks() const override { return false; }
  bool supervises_inside() const override { return true; }
  Status SetPolicy(const std::string& name, const std::string& policy) const override;
  Result<std::vector<Proposal>> Proposals(const std::string& name,
                                          Deadline deadline) const override;
  Result<Child> AskProposals(const std::string& name) const override;
  std::vector<Proposal> ReadProposals(std::string_view text) const override;
  Status MakeCredential(const std::string& id, const CredentialForm& form,
                        const Secret& value) const override;
  Result<std::set<std::string>> CredentialNames(const std::string& start,
                                                Deadline deadline) const override;
  Status DeleteCredential(const std::string& id, Deadline deadline) const override;
  Result<bool> HoldsProvider(const std::string& name, Deadline deadline) const override;

 private:
  // Adds to `request` what all have: the workspace, and for what is to happen once, an identifier.
  Result<codec::Json> Ask(const RpcMethod& method, codec::Json request, Deadline deadline) const;
  Result<codec::Json> DoOnce(const RpcMethod& method, codec::Json request, Deadline deadline) const;
  Status Drop(const RpcMethod& method, codec::Json request, Deadline deadline) const;
  Status ForEachPage(const RpcMethod& method, const codec::Json& request, Deadline deadline,
                     const std::function<Status(const codec::Json&)>& take) const;
  Status AwaitReady(const std::string& name, Deadline deadline) const;
  codec::Json ExecRequest(const std::string& name, const std::string& script) const;
  Status Change(const std::string& name, const char* setting, codec::Json value) const;
  Result<codec::Json> AwaitPolicy(const std::string& name, int64_t version) const;
  codec::Json Scope() const;

  std::string state_;
  int cancel_;
};

// Writes down in `state` which workspace the run uses: OPENSHELL_WORKSPACE, or "default".
Status WriteWorkspace(const std::string& state);
// Returns whether that was written: the gateway is asked by gRPC.
bool HasWorkspace(const std::string& state);

}  // namespace openshell
