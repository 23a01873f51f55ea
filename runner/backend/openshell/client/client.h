// SPDX-License-Identifier: Apache-2.0
// What is asked of an OpenShell gateway, whichever generation it is of: 0.0 through its command
// line (command_client.h), 0.1 by gRPC (rpc_client.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/openshell/client/proposal.h"
#include "base/child.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"

namespace openshell {

// A sandbox that is to be created.
struct SandboxSpec {
  std::string name;
  std::string policy;  // The text that RenderPolicy() returns.
  std::string image;   // If empty, the gateway's default.
  double cpus = 0;     // 0 for all.
  int64_t memory_bytes = 0;
  std::string approval_mode;  // "", "manual", "auto".
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> providers;
};

// A sandbox as the gateway has it. Its texts may come from elsewhere.
struct SandboxFacts {
  std::string name;
  std::string phase;    // OpenShell's word: "Ready".
  std::string created;  // Likewise: "2026-11-26 16:42:11", of the gateway's clock.
  std::vector<std::pair<std::string, std::string>> labels;

  bool ready() const { return phase == "Ready"; }
  // Returns whether its main process has ended. It can be started again, and has its workspace.
  bool stopped() const { return phase == "Stopped" || phase == "Completed" || phase == "Error"; }
  // Returns the value of a label, or "".
  std::string Label(std::string_view key) const;
};

// The sandboxes of one list.
inline constexpr size_t kSandboxesMax = 10000;
Error TooManySandboxes();

// The variable that a credential is in, and where its value belongs in requests: in `header`,
// behind `scheme` and a blank if there is one. Without a header, that is for the gateway to decide.
struct CredentialForm {
  std::string variable;
  std::string header = {};
  std::string scheme = {};
};

inline constexpr int64_t kMebibyte = 1 << 20;  // OpenShell's unit of memory.

// One gateway, for any process that may read the files in a state directory. Every failure is
// kTemporary if the gateway cannot be reached or does not answer in time, kSetup if it refuses the
// credentials or its certificate is not the expected one, kRefused if they lack a right, kNotFound
// if what was named is not there, kInvalid if it refuses what was asked.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Returns another one for the same gateway; without the `cancel` that it was made with, for what
  // has to be done after a run was interrupted, too.
  virtual std::unique_ptr<Client> Uncancelled() const = 0;
  // Returns what becomes readable when nothing is to be waited for any more; -1 if nothing does.
  virtual int cancel() const = 0;

  // Fails as said above if the gateway does not let this program in. Returns its version.
  virtual Result<std::string> CheckAnswer(Deadline deadline) const = 0;

  // Creates a sandbox in which nothing runs but what keeps it, and waits until it is ready or is
  // not going to be. Its policy is in force before anything runs in it.
  virtual Status Create(const SandboxSpec& spec, Deadline deadline) const = 0;
  // Lets the agent of a sandbox propose network rules itself. The setting is the sandbox's own, and
  // goes with it.
  virtual Status LetPropose(const std::string& name) const = 0;
  // Returns nullopt if no sandbox has that name.
  virtual Result<std::optional<SandboxFacts>> Find(const std::string& name,
                                                   Deadline deadline) const = 0;
  // Returns those with a label; more than kSandboxesMax are kIo.
  virtual Result<std::vector<SandboxFacts>> List(const std::string& key, const std::string& value,
                                                 Deadline deadline) const = 0;
  // Asks for the start of a sandbox that is stopped().
  virtual Status Start(const std::string& name, Deadline deadline) const = 0;
  // Succeeds if no sandbox has that name. The gateway may take a while to remove it.
  virtual Status Delete(const std::string& name, Deadline deadline) const = 0;

  // Runs `sh -c script` with the agent's rights, in no particular directory, and with HOME=/proc.
  // `input` (borrowed, or -1) is read to its end, and has at most input_bytes_max() bytes. The
  // child's status is the script's; a failure of OpenShell's own is a status other than 0, with
  // "Error:" at the beginning of a line on its standard error.
  virtual Result<Child> Exec(const std::string& name, const std::string& script,
                             int input) const = 0;
  virtual size_t input_bytes_max() const = 0;
  // Returns why the command of the process `pid`, which has ended, broke off; empty if it ended by
  // itself, or if that cannot be known.
  virtual std::string WhyBroken(pid_t pid) const = 0;
  // Copies the directory `from` of this machine to TO/BASENAME; `to` is absolute.
  virtual Status Put(const std::string& name, const std::string& from, const std::string& to,
                     Deadline deadline) const = 0;

  // Starts a process that appends each record of the sandbox's supervisor to `log`, borrowed, as a
  // line that event_line.h reads; to `said`, what it has to say of that itself.
  virtual Result<Child> FollowRecords(const std::string& name, int log, int said) const = 0;
  // Returns whether records come in order, and one of each command, so that it can be seen when all
  // have come.
  virtual bool records_have_marks() const = 0;

  // Returns whether process 1 of a sandbox is OpenShell's own, perhaps with the agent's rights.
  virtual bool supervises_inside() const = 0;

  // Replaces the sandbox's policy, rendered as above; returns when its supervisor has loaded it. If
  // that fails, the policy before is put back.
  virtual Status SetPolicy(const std::string& name, const std::string& policy) const = 0;

  // Returns the policy proposals for a sandbox.
  virtual Result<std::vector<Proposal>> Proposals(const std::string& name,
                                                  Deadline deadline) const = 0;
  // Starts a process that prints those that are pending, for ReadProposals().
  virtual Result<Child> AskProposals(const std::string& name) const = 0;
  virtual std::vector<Proposal> ReadProposals(std::string_view text) const = 0;

  // Makes a provider called `id`, with a profile of its own of that name, for the value of one
  // variable. It goes where a policy binds it.
  virtual Status MakeCredential(const std::string& id, const CredentialForm& form,
                                const Secret& value) const = 0;
  // Returns the names of all providers and profiles whose name is `start` and digits.
  virtual Result<std::set<std::string>> CredentialNames(const std::string& start,
                                                        Deadline deadline) const = 0;
  // Deletes a provider and the profile of its name; succeeds if neither is there.
  virtual Status DeleteCredential(const std::string& id, Deadline deadline) const = 0;
  virtual Result<bool> HoldsProvider(const std::string& name, Deadline deadline) const = 0;
};

}  // namespace openshell
