// SPDX-License-Identifier: Apache-2.0
// One sandbox on an OpenShell gateway: create it, execute in it, read its records, fetch its
// files, remove it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/openshell/client/client.h"
#include "backend/openshell/client/command_line.h"
#include "backend/openshell/fetch.h"
#include "backend/openshell/policy_text.h"
#include "base/child.h"
#include "base/result.h"
#include "base/secret.h"
#include "policy/model/policy.h"

namespace openshell {

// The bytes of OpenShell's records of a sandbox that are kept and read. The agent causes them.
inline constexpr size_t kRecordsBytesMax = size_t{64} << 20;

// The directory of the checkout in a sandbox.
inline constexpr char kWorkspace[] = "/sandbox/workspace";

struct Credential {
  CredentialForm form;
  std::vector<std::string> hosts;
  Secret value;
};

struct SandboxRequest {
  policy::Policy policy;
  std::vector<Credential> credentials;
  std::vector<std::string> providers;  // Others that the gateway holds; not deleted.
  std::string image;                   // If empty, the gateway's default.
  double cpus = 0;                     // 0 for all.
  int64_t memory_bytes = 0;
  std::string approval_mode;  // "", "manual", "auto".
  std::vector<std::pair<std::string, std::string>> labels;
};

// One sandbox of an OpenShell gateway. It is known by the gateway's name(), so that each process
// that has the gateway's configuration can work with it; deleted by Delete() alone.
class Sandbox {
 public:
  // Takes the names by which other processes reach the sandbox.
  Sandbox(std::unique_ptr<Client> client, std::string name, std::string state)
      : client_(std::move(client)), name_(std::move(name)), state_(std::move(state)) {}

  // Creates it. Its policy is in force before anything runs in it. After an error, Delete() removes
  // what was made. Fails with kSetup if a profile of the image sets HOME.
  Status Create(SandboxRequest request);

  // Runs `script` in the checkout, with bash or, if the image has no bash, with sh. Its standard
  // input ends at once. Fails with kUsage if the script is larger than OpenShell takes.
  Result<Child> Exec(std::string_view script) const;
  // Runs a short script of this program's own to its end, by the image's sh with the agent's
  // rights, in no particular directory. `input` is its standard input, at most
  // Client::input_bytes_max().
  Result<Answer> Ask(const std::string& script, Deadline deadline,
                     std::string_view input = {}) const;

  // Copies a file or directory of this machine to `to` (absolute, or relative to /sandbox).
  Status Put(const std::string& from, const std::string& to) const;
  // Copies the directory `from` (absolute) into the empty directory `to`, as FetchArchive() does.
  // If everything in the sandbox has `ended`, unreadable files are made readable there.
  Result<Fetched> Get(const std::string& from, const std::string& to, bool ended,
                      const FetchLimits& limits) const;
  // Copies the file `from` (absolute; a link is followed) likewise.
  Result<Fetched> GetFile(const std::string& from, const std::string& to,
                          const FetchLimits& limits) const;

  // Replaces the policy by the network rules of `policy`, whose other sections must be those of the
  // one that it began with, and returns when the sandbox's supervisor has loaded it. A credential
  // of a host that has no endpoint any more is sent nowhere. If it is not accepted, the policy
  // before stays in force. Fails as RenderPolicy() does; with kInvalid if the gateway refuses it.
  Status ReplacePolicy(const policy::Policy& policy) const;

  // Begins to write down what its supervisor records; the process that calls it does so until it
  // ends, or until kRecordsBytesMax are written, or as many bytes as its own hard limit of a file
  // allows.
  Status FollowEvents();
  // Returns a descriptor that is readable once no more records are written down; -1 if none ever
  // were.
  int records_ended() const { return follower_ ? follower_->exit().get() : -1; }
  // Returns whether the bound is why.
  bool RecordsFull() const;
  // Returns the beginning of what OpenShell's command line itself said meanwhile, on one line.
  std::string SaidOfRecords() const;
  // Waits until every record so far has arrived, or, where OpenShell's have no marks, until none
  // comes any more. Returns false if that is not within the deadline.
  bool AwaitEvents(Deadline deadline) const;
  bool records_have_marks() const { return client_->records_have_marks(); }
  std::string events_path() const { return state_ + "/events.log"; }

  Result<std::vector<Proposal>> Proposals() const;
  // Waits until OpenShell has derived proposals from what it refused, which it does a while later.
  void AwaitProposals(Deadline deadline) const;

  // Ends all that runs in it, but for what keeps it. Returns whether that is sure.
  bool EndProcesses() const;
  // Returns whether it is there and ready. Fails with kTemporary if the gateway does not answer.
  Result<bool> IsReady() const;
  // Starts it again if it is stopped(), and waits until it is ready, a minute at most. Its
  // workspace is kept; the processes in it are gone. Returns whether it was started again.
  Result<bool> Restart() const;
  // Deletes the sandbox with everything that Create() made; succeeds if nothing of it is there. A
  // gateway that answers is asked again. The sandbox may take `each`, and its credentials once
  // more.
  Status Delete(std::chrono::seconds each) const;

  const std::string& name() const { return name_; }
  const Client& client() const { return *client_; }

 private:
  Result<Fetched> Fetch(const std::string& script, const std::string& to,
                        const FetchLimits& limits) const;
  Status CheckHome() const;
  bool AwaitQuiet(Deadline deadline) const;

  std::unique_ptr<Client> client_;
  std::string name_;
  std::string state_;
  std::vector<CredentialBinding> bindings_;  // From Create() on.
  std::unique_ptr<Child> follower_;
  int64_t records_max_ = kRecordsBytesMax;
};

// Returns whether what failed with `code` may succeed later: the gateway answers and lets this
// program in, but may still be busy with a sandbox.
bool MayPass(Code code);

// The label of each sandbox that this program makes.
inline constexpr char kManagedLabel[] = "managed-by";
inline constexpr char kManagedBy[] = "agentic-ci";

// Deletes the providers of the run called `name`, which hold credentials, each with its profile.
// One that cannot be deleted does not keep the others. Tries again until the deadline while the
// gateway still needs one. Returns how many there were, or the first error of those that stay; an
// error that may pass (MayPass) comes before one that does not.
Result<int> DeleteCredentials(const Client& client, const std::string& name, Deadline deadline);

// Returns the sandbox of a gateway whose state another process has at `state`. Programs of the
// checkout at `checkout` are not started.
Sandbox SandboxAt(const std::string& state, const std::string& checkout);

}  // namespace openshell
