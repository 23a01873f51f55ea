// SPDX-License-Identifier: Apache-2.0
// The messages between a client and the supervisor of a sandbox: messages of base/wire.h over a
// SOCK_SEQPACKET socket, each with its kind first. Both ends are one user's; the supervisor trusts
// nothing all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace session {

enum class MessageKind : uint8_t {
  // To the supervisor.
  kScript,  // A piece of the next script, a text.
  kExec,    // Runs what the pieces made: an ExecRequest.
  kDiff,    // Asks for what changed: kPiece..., then kChanges.
  kStatus,
  kShellState,  // Asks for what a new shell would be given: kPiece..., then kHistory, and kState.
  kReset,     // Begins anew: kState; or kEnded, and the next instance answers on the same address.
  kPut,       // A TransferRequest, with the descriptor that a tar stream is read from,
  kGet,       // or written to: kDone.
  kApply,     // Writes what changed to the checkout: kDone.
  kSnapshot,  // With the descriptor to write a layer to: kPiece..., the shell's state,
              // kSnapshotFacts.
  kRestore,   // A RestoreRequest behind kScript..., the shell's state; with the descriptor that a
              // layer is read from: kDone. Then
  kCommit,    // puts in place what was restored: kState.
  kDelete,    // Ends the sandbox; a DeleteRequest.
  kTerminal,  // A TerminalRequest, with a socket that the master of a terminal in the sandbox comes
              // over: kDone. Then a shell runs on it: kResult.
  kTouched,   // Asks for the files that changed since this connection asked before: kChanges.
  kPolicy,    // Replaces the policy by what the kScript pieces made; a text, what errors call it:
              // kDone, the policy's SHA-256.
  kTake,      // Asks a pool for a sandbox: kDone, its name.
  kInput,     // A piece of the standard input of this client's command, empty for its end. The next
              // one may follow once kInputTaken has come.
  kCancel,    // Ends this client's command: its kResult follows, or a fault if it had not begun.
  kWindow,  // Lets so many more bytes of output be sent, an int64; before kExec, it sets the first
            // window. Without one there is no limit. What is left when a command ends is sent.

  // From it.
  kOutput,      // A piece of a command's standard output,
  kError,       // or standard error.
  kInputTaken,  // The command's standard input has taken a kInput.
  kResult,      // A CommandResult.
  kPiece,       // Of a text that is too long for one message.
  kChanges,     // The ChangedFiles since the sandbox's beginning, behind the patch in pieces.
  kHistory,     // A list of PastCommand, the oldest first.
  kState,       // A SandboxState.
  kDone,        // A text: what was done.
  kSnapshotFacts,
  kEnded,  // An EndReport. Nothing of the sandbox is left but its report.
  kFault,  // An Error.
};

inline constexpr size_t kPieceBytesMax = 32768;
inline constexpr size_t kMessageBytesMax = 65536;
inline constexpr size_t kScriptBytesMax = size_t{4} << 20;
inline constexpr int64_t kWindowBytesMax = int64_t{1} << 40;
// The bound on one message's list of changes.
inline constexpr size_t kChangesBytesMax = 49152;

struct ExecRequest {
  int64_t timeout_ms = 0;  // 0 for the sandbox's own.
  bool waits = true;       // Behind other clients' commands; otherwise it is told "busy".
  std::string stream;      // The form of its output (agent::RepeatFilter).
  // True if the result lists the files that changed. It then waits for a look at all files of the
  // layer, which takes about 3 ms for each thousand.
  bool lists_changes = true;
  bool input = false;  // True if its standard input comes in kInput; otherwise that is empty.
};

struct FileChange {
  std::string kind;  // "created", "modified", "deleted", "renamed", "mode".
  std::string path;  // Relative to the checkout; bytes.
  std::string old_path;
  bool directory = false;
};

// Why a command ended. kMemory, kTimeout and kOutput are limits.
enum class EndReason : uint8_t { kExit, kSignal, kTimeout, kMemory, kOutput, kCancelled };

struct CommandResult {
  EndReason reason = EndReason::kExit;
  int32_t status = 0;  // The status as a shell has it.
  bool shell_lost =
      false;  // True if the next command has a new shell, with the state from before this one.
  int64_t wall_ms = 0;
  int64_t cpu_ms = -1;  // Processor time of everything in the sandbox meanwhile; -1 if not counted.
  int64_t memory_peak_bytes = -1;  // The peak of the sandbox so far; -1 if not counted.
  int64_t truncated_stdout = 0;
  int64_t truncated_stderr = 0;
  std::string cwd;
  std::vector<FileChange> changes;
  bool changes_complete = true;  // False too if no list was asked for.
};

// A command that has ended, as it is remembered.
struct PastCommand {
  std::string script;  // Its beginning, at most kPastScriptBytesMax, with secrets masked.
  EndReason reason = EndReason::kExit;
  int32_t status = 0;
  int64_t wall_ms = 0;
};
// What is remembered fits into one message.
inline constexpr size_t kPastScriptBytesMax = 1024;
inline constexpr size_t kPastCommandsMax = 40;

// The use of one limit.
struct LimitUse {
  std::string name;
  int64_t used = -1;  // -1 for not counted.
  int64_t most = 0;   // 0 if not limited.
  std::string unit;   // "bytes", "s", or empty: a number.
};

struct SandboxState {
  std::string shell;
  std::string cwd;
  bool busy = false;
  int64_t waiting = 0;
  int64_t commands = 0;
  int64_t seconds_left = 0;
  std::vector<LimitUse> limits = {};  // Empty if this backend does not say.
};

struct TerminalRequest {
  std::string term;  // The variable TERM.
  uint16_t columns = 0;
  uint16_t rows = 0;
};

struct TransferRequest {
  std::string path;  // In the sandbox; relative to the checkout.
  std::string name;  // kPut: what it is called where it comes from.
  // The stream is an archive for others than this program: of what is in the directory `path`, or
  // of the file.
  bool archive = false;
};

// The facts that a snapshot has besides its layer, and that a restore is given of it.
struct SnapshotFacts {
  std::string checkout;  // The place where it lay.
  std::string shell;     // "bash" or "sh".
  std::string cwd;
  std::vector<std::string> environment;  // "NAME=value": what the run gave its agent.
  std::string policy_sha256;
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t left_out = 0;
  std::string first_left_out;
  std::string narrowed_by;  // What narrowed its run; empty if nothing had.
};

struct RestoreRequest {
  SnapshotFacts facts;
  std::string diff_id;  // The digest of the layer, unpacked.
};

struct DeleteRequest {
  bool apply = false;
  bool apply_ignored = false;  // Only together with `apply`.
};

struct EndReport {
  int32_t exit_code = 0;
  std::string report_dir;
};

template <typename Archive>
void Visit(Archive& archive, ExecRequest& value) {
  archive(value.timeout_ms, value.waits, value.stream, value.lists_changes, value.input);
}
template <typename Archive>
void Visit(Archive& archive, FileChange& value) {
  archive(value.kind, value.path, value.old_path, value.directory);
}
template <typename Archive>
void Visit(Archive& archive, CommandResult& value) {
  archive(value.reason, value.status, value.shell_lost, value.wall_ms, value.cpu_ms,
          value.memory_peak_bytes, value.truncated_stdout, value.truncated_stderr, value.cwd,
          value.changes, value.changes_complete);
}
template <typename Archive>
void Visit(Archive& archive, PastCommand& value) {
  archive(value.script, value.reason, value.status, value.wall_ms);
}
template <typename Archive>
void Visit(Archive& archive, LimitUse& value) {
  archive(value.name, value.used, value.most, value.unit);
}
template <typename Archive>
void Visit(Archive& archive, SandboxState& value) {
  archive(value.shell, value.cwd, value.busy, value.waiting, value.commands, value.seconds_left,
          value.limits);
}
template <typename Archive>
void Visit(Archive& archive, TerminalRequest& value) {
  archive(value.term, value.columns, value.rows);
}
template <typename Archive>
void Visit(Archive& archive, TransferRequest& value) {
  archive(value.path, value.name, value.archive);
}
template <typename Archive>
void Visit(Archive& archive, SnapshotFacts& value) {
  archive(value.checkout, value.shell, value.cwd, value.environment, value.policy_sha256,
          value.files, value.bytes, value.left_out, value.first_left_out, value.narrowed_by);
}
template <typename Archive>
void Visit(Archive& archive, RestoreRequest& value) {
  archive(value.facts, value.diff_id);
}
template <typename Archive>
void Visit(Archive& archive, DeleteRequest& value) {
  archive(value.apply, value.apply_ignored);
}
template <typename Archive>
void Visit(Archive& archive, EndReport& value) {
  archive(value.exit_code, value.report_dir);
}

}  // namespace session
