// SPDX-License-Identifier: Apache-2.0
// Gateways of OpenShell 0.0, asked through its command line.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/openshell/client/client.h"
#include "backend/openshell/client/command_line.h"

namespace openshell {

class CommandClient final : public Client {
 public:
  // `state` is a directory that this object may keep files in.
  CommandClient(CommandLine openshell, std::string state)
      : openshell_(std::move(openshell)), state_(std::move(state)) {}

  std::unique_ptr<Client> Uncancelled() const override;
  int cancel() const override { return openshell_.cancel(); }
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
  // Its messages have 1 MiB, in which the command and the sandbox's name are, too.
  size_t input_bytes_max() const override { return (size_t{1} << 20) - (size_t{64} << 10); }
  std::string WhyBroken(pid_t) const override { return {}; }
  Status Put(const std::string& name, const std::string& from, const std::string& to,
             Deadline deadline) const override;
  Result<Child> FollowRecords(const std::string& name, int log, int said) const override;
  bool records_have_marks() const override { return true; }
  bool supervises_inside() const override { return false; }
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
  CommandLine openshell_;
  std::string state_;
};

}  // namespace openshell
