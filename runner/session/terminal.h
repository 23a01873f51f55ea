// SPDX-License-Identifier: Apache-2.0
// The client's side of a person's shell in a sandbox: this process's own terminal is joined to one
// that was opened inside. The sandbox's is the kernel's, so jobs, signals and sizes are too.
#pragma once

#include <termios.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/place.h"
#include "session/protocol.h"
#include "session/typed_lines.h"

namespace session {

// Standard input and standard output are a terminal: keys come as they are pressed while this
// lives, and it is as it was afterwards.
class RawTerminal {
 public:
  // Fails with kUsage if they are not.
  static Result<RawTerminal> Open();
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  // Sets whether what is written are lines (ours) or bytes (the sandbox's).
  void WriteLines(bool lines) const;

 private:
  explicit RawTerminal(const termios& before) : before_(before) {}

  std::optional<termios> before_;
};

// A shell in a sandbox, on a terminal of the sandbox's.
class TerminalShell {
 public:
  // Fails with kTemporary if another command is running, with kUnsupported if terminals cannot be
  // opened in there.
  static Result<TerminalShell> Start(const Place& place, const std::string& name,
                                     const std::string& term);

  struct End {
    std::optional<CommandResult> result;  // The shell ended,
    int signal = 0;                       // or this signal came,
    bool replaced = false;                // or a command put another sandbox in place of this one.
  };
  // Carries bytes both ways until something ends. `command` is called for each line that `typed`
  // takes out, and returns true if the shell's sandbox was replaced. Fails with kIo if the sandbox
  // ended. SIGPIPE is ignored.
  Result<End> Carry(TypedLines& typed, const RawTerminal& terminal,
                    const std::function<bool(const std::string& line)>& command);

 private:
  TerminalShell(Fd connection, Fd master)
      : connection_(std::move(connection)), master_(std::move(master)) {}

  Result<std::optional<End>> Turn();
  Result<std::optional<End>> TakeKeys();
  Result<std::optional<End>> TakeSignal();
  Result<std::optional<End>> TakeMessage();
  Status TakeOutput();
  Status GiveKeys();
  KeyReader Reader() const;

  Fd connection_;
  Fd master_;
  Fd signals_;
  std::string for_shell_;  // Keys that it has not read.
  bool hung_up_ = false;   // No process has the terminal any more.
  TypedLines* typed_ = nullptr;
  const RawTerminal* terminal_ = nullptr;
  const std::function<bool(const std::string&)>* command_ = nullptr;
};

}  // namespace session
