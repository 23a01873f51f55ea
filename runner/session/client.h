// SPDX-License-Identifier: Apache-2.0
// The requests of clients to a sandbox that lasts, each over a connection of its own. An Error of
// kIo means that the sandbox ended meanwhile.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/result.h"
#include "session/place.h"
#include "session/protocol.h"
#include "session/transfer/tree_receiver.h"

namespace session {

// Runs `script` in the sandbox's shell and gives what it writes to `sink` as it comes (with `error`
// for standard error). Fails with kTemporary if another command is running, and `request` does not
// wait.
using Sink = std::function<Status(bool error, std::string_view bytes)>;
Result<CommandResult> Exec(const Place& place, const std::string& name, std::string_view script,
                           const ExecRequest& request, const Sink& sink);

struct Diff {
  std::string patch;
  std::vector<FileChange> changes;
  bool complete = true;
};
Result<Diff> AskDiff(const Place& place, const std::string& name);

// Copies the file or directory `source` of the host to `target` in the sandbox (transfer/landing.h
// says where that is), which is relative to the checkout. Links are copied, not followed. Gives
// what was left out, or nothing. SIGPIPE is blocked or ignored, here and below.
Result<std::string> Put(const Place& place, const std::string& name, const std::string& source,
                        const std::string& target);
// Copies the other way round, at most `limits`; nothing is written through a link of the sandbox's,
// nor outside of `target`. A file is written to standard output where `target` is "-", and to a
// pipe or character device that is there; no other thing than a file or a link is replaced.
Result<std::string> Get(const Place& place, const std::string& name, const std::string& source,
                        const std::string& target, const ReceiveLimits& limits);
// Writes what changed to the checkout if the gates let it pass (else kRefused), and lets the
// sandbox live on.
struct Applied {
  int64_t files = 0;
  std::vector<std::string> conflicts;  // Lines about files that were left as others changed them.
};
Result<Applied> Apply(const Place& place, const std::string& name);

// The layer of what was written in the sandbox, a tar stream, to `layer` as it comes, and the
// shell's state. Nothing in it runs meanwhile.
struct TakenSnapshot {
  SnapshotFacts facts;
  std::string state;
};
// A snapshot that was requested. The sandbox takes it in the order of its requests.
struct AskedSnapshot {
  Fd connection;
  Fd layer;
};
// Does not wait: fails with kTemporary while as many clients wait for the sandbox as may.
Result<AskedSnapshot> AskSnapshot(const Place& place, const std::string& name);
Result<TakenSnapshot> TakeSnapshot(const AskedSnapshot& asked,
                                   const std::function<Status(std::string_view)>& layer);
// Puts the sandbox where a snapshot was taken: `stream` writes the layer, packed or not, to the
// descriptor it is given. The sandbox stays as it was if anything fails.
Result<SandboxState> Restore(const Place& place, const std::string& name,
                             const RestoreRequest& request, std::string_view state,
                             const std::function<Status(int fd)>& stream);

// Waits while the sandbox is being started.
Result<SandboxState> AskState(const Place& place, const std::string& name, Deadline deadline);
// Asks for the same, and for the commands that make a new shell go on where the sandbox's was after
// its last command: variables, functions, aliases, options, traps and the directory.
struct ShellState {
  SandboxState sandbox;
  std::string commands;
  std::vector<PastCommand> history;  // The last ones that ended.
};
Result<ShellState> AskShellState(const Place& place, const std::string& name);
// Ends all that runs in it and discards what was written; the sandbox is as it was created.
Result<SandboxState> Reset(const Place& place, const std::string& name);
// Ends the sandbox. When this returns, its report is written and nothing else is left. Fails as the
// sandbox's end did, for instance where its report could not be written.
Result<EndReport> Delete(const Place& place, const std::string& name, const DeleteRequest& request);

// Replaces the network rules of the sandbox's policy by those of the policy `text`, which errors
// call `shown`, and returns the SHA-256 of that. It is checked as the file of `--policy` is when
// that is read again; if it is not accepted, the policy stays in force. Fails with kUsage for a
// sandbox whose policy is not of such a file.
Result<std::string> ReplacePolicy(const Place& place, const std::string& name,
                                  std::string_view text, const std::string& shown);

struct ChangedFiles {
  std::vector<FileChange> changes;
  bool complete = true;
};

// Watches what changes in a sandbox's checkout while it goes on, over a connection of its own.
// Commands go on during a look, so that it may see a file half written. Several watches do not
// meet.
class FileWatch {
 public:
  // Fails with kNotFound if no sandbox has that name.
  static Result<FileWatch> Open(const Place& place, const std::string& name);

  // Returns what has changed since the look before. The first look: since the sandbox began, or in
  // tier `landlock`, since now. After an error, the connection is of no use any more.
  Result<ChangedFiles> Look(Deadline deadline);

 private:
  explicit FileWatch(Fd connection) : connection_(std::move(connection)) {}

  Fd connection_;
};

}  // namespace session
