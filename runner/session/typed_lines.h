// SPDX-License-Identifier: Apache-2.0
// Takes agentic-ci's own commands (`%diff`) out of what a person types in `sandbox shell`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace session {

// Whom a key would reach.
enum class KeyReader {
  kShell,    // It waits for a line.
  kProgram,  // One that takes each key as it comes: an editor, a pager.
  kLines,    // One that reads lines, or nothing: what it leaves is the shell's.
};

// Takes out of what a person types at a terminal in a sandbox the lines that are commands to
// agentic-ci: `%diff`, at the beginning of a line, while the shell itself waits for one. Only keys
// come through here; what the sandbox writes to its terminal never does. Pure.
class TypedLines {
 public:
  // `names` are those of the commands, with their '%'.
  explicit TypedLines(std::vector<std::string> names) : names_(std::move(names)) {}

  // The outcome of some keys, in this order.
  struct Typed {
    std::string for_shell;
    std::string for_screen;              // The echo of a command that is being typed.
    std::optional<std::string> command;  // A whole one; what was typed behind it is in `rest`.
    std::string_view rest;
  };
  Typed Take(std::string_view keys, KeyReader reader);

 private:
  void TakeHeld(char key, Typed* typed);
  void GiveUp(Typed* typed);
  void Pass(char key, Typed* typed);
  bool MayBecomeCommand(std::string_view text) const;
  bool IsCommand(std::string_view text) const;

  std::vector<std::string> names_;
  std::string held_;         // The keys of a command so far; may be empty.
  std::string last_;         // The last keys that passed, by which a paste is recognised.
  std::string answer_;       // The answer of the terminal itself so far, where a line begins.
  bool line_begins_ = true;  // True if the shell has none of the line yet.
  bool pasting_ = false;     // True between the marks of a bracketed paste.
};

}  // namespace session
