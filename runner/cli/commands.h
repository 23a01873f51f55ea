// SPDX-License-Identifier: Apache-2.0
// Every command as data: `--help` and docs/reference/cli.md are generated from it. Each command is
// implemented in its own file (run_command.cc, ...); main.cc connects the two.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace cli {

// A variable of the environment that a command looks at. There are no others.
struct VariableSpec {
  std::string_view name;
  std::string_view doc;  // Sentences.
};

struct Command {
  std::string_view name;      // One word or two: "policy explain".
  std::string_view operands;  // The operands as in usage: "REPORT-DIR".
  std::string_view doc;       // Sentences.
  std::vector<OptionSpec> options;
  std::vector<VariableSpec> variables;
  bool hidden = false;  // For the action alone: in the reference, not in `--help`.
};

inline constexpr OptionSpec kJsonOption = {"json", "", "", "Print the result as one JSON object."};
// An option that `run` and `eval run` share.
inline constexpr OptionSpec kModelHostOption = {
    "model-host", "HOST[:PORT]", "",
    "The server of the model that COMMAND uses. What that is asked does not count as text sent to "
    "a server. An agent's own is known."};

// Returns the commands in the order of `--help`. They are made anew at each call; it is called
// once.
std::vector<Command> Commands();

// Returns the command that `words` begin with. Fails with kUsage; the hint is the nearest one.
Result<Command> SelectCommand(const std::vector<Command>& commands,
                              const std::vector<std::string>& words);

// Renders the help: "usage: ..." and one line per command.
std::string RenderHelp(const std::vector<Command>& commands);
// Returns the help that `help` and `words` ask for: everything, the commands that begin with a
// word, or one command. Fails as SelectCommand() does.
Result<std::string> HelpFor(const std::vector<Command>& commands,
                            const std::vector<std::string>& words);
// Renders the help of a command: "usage: ...", what it does, its options and variables; lines of at
// most 80 columns.
std::string RenderHelp(const Command& command);

}  // namespace cli
