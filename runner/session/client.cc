// SPDX-License-Identifier: Apache-2.0
#include "session/client.h"

#include <chrono>

#include "base/wire.h"
#include "session/answer.h"

namespace session {
namespace {

constexpr std::chrono::seconds kStartTime{120};

// Waits until an end is reported, or the connection closes with the process.
Result<EndReport> AwaitEndReport(const Fd& connection) {
  std::string message = TRY(Receive(connection, Deadline::Never()));
  MessageKind kind{};
  EndReport report;
  if (!wire::Read(message, kind, report) || kind != MessageKind::kEnded) return Malformed();
  return report;
}

}  // namespace

Result<CommandResult> Exec(const Place& place, const std::string& name, std::string_view script,
                           const ExecRequest& request, const Sink& sink) {
  if (script.size() > kScriptBytesMax) {
    return Error{Code::kUsage,
                 "the script is larger than " + std::to_string(kScriptBytesMax) + " bytes"};
  }
  Fd connection = TRY(place.Connect(name));
  TRY(SendScript(connection, script));
  TRY(Send(connection, wire::Write(MessageKind::kExec, request)));
  for (;;) {
    std::string message = TRY(Receive(connection, Deadline::Never()));
    MessageKind kind{};
    std::string bytes;
    CommandResult result;
    if (wire::Read(message, kind, bytes) &&
        (kind == MessageKind::kOutput || kind == MessageKind::kError)) {
      TRY(sink(kind == MessageKind::kError, bytes));
    } else if (wire::Read(message, kind, result) && kind == MessageKind::kResult) {
      return result;
    } else {
      return Malformed();
    }
  }
}

Result<Diff> AskDiff(const Place& place, const std::string& name) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kDiff, ExecRequest{})));
  Diff diff;
  for (;;) {
    std::string message = TRY(Receive(connection, Deadline::Never()));
    MessageKind kind{};
    std::string piece;
    if (wire::Read(message, kind, piece) && kind == MessageKind::kPiece) {
      diff.patch += piece;
    } else if (wire::Read(message, kind, diff.changes, diff.complete) &&
               kind == MessageKind::kChanges) {
      return diff;
    } else {
      return Malformed();
    }
  }
}

Result<SandboxState> AskState(const Place& place, const std::string& name, Deadline deadline) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kStatus)));
  std::string message = TRY(Receive(connection, deadline));
  MessageKind kind{};
  SandboxState state;
  if (!wire::Read(message, kind, state) || kind != MessageKind::kState) return Malformed();
  return state;
}

Result<ShellState> AskShellState(const Place& place, const std::string& name) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kShellState)));
  ShellState state;
  for (;;) {
    std::string message = TRY(Receive(connection, Deadline::Never()));
    MessageKind kind{};
    std::string piece;
    std::vector<PastCommand> history;
    if (wire::Read(message, kind, piece) && kind == MessageKind::kPiece) {
      state.commands += piece;
    } else if (wire::Read(message, kind, history) && kind == MessageKind::kHistory) {
      state.history = std::move(history);
    } else if (wire::Read(message, kind, state.sandbox) && kind == MessageKind::kState) {
      return state;
    } else {
      return Malformed();
    }
  }
}

Result<SandboxState> Reset(const Place& place, const std::string& name) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kReset)));
  std::string message = TRY(Receive(connection, Deadline::Never()));
  MessageKind kind{};
  SandboxState state;
  if (wire::Read(message, kind, state) && kind == MessageKind::kState) return state;
  // Its next instance is made anew.
  EndReport report;
  if (!wire::Read(message, kind, report) || kind != MessageKind::kEnded) return Malformed();
  return AskState(place, name, Deadline::After(kStartTime));
}

Result<EndReport> Delete(const Place& place, const std::string& name,
                         const DeleteRequest& request) {
  Fd connection = TRY(place.Connect(name));
  TRY(Send(connection, wire::Write(MessageKind::kDelete, request)));
  EndReport report = TRY(AwaitEndReport(connection));
  TRY(place.AwaitEnd(name));
  return report;
}

Result<std::string> ReplacePolicy(const Place& place, const std::string& name,
                                  std::string_view text, const std::string& shown) {
  Fd connection = TRY(place.Connect(name));
  TRY(SendScript(connection, text));
  TRY(Send(connection, wire::Write(MessageKind::kPolicy, shown)));
  return AwaitDone(connection);
}

Result<FileWatch> FileWatch::Open(const Place& place, const std::string& name) {
  return FileWatch(TRY(place.Connect(name)));
}

Result<ChangedFiles> FileWatch::Look(Deadline deadline) {
  TRY(Send(connection_, wire::Write(MessageKind::kTouched)));
  std::string message = TRY(Receive(connection_, deadline));
  MessageKind kind{};
  ChangedFiles changed;
  if (!wire::Read(message, kind, changed.changes, changed.complete) ||
      kind != MessageKind::kChanges) {
    return Malformed();
  }
  return changed;
}

}  // namespace session
