// SPDX-License-Identifier: Apache-2.0
// Renders `--help`: the common commands and options, or with `--all` every one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"

namespace cli {

// How much help is asked for.
enum class HelpDetail { kCommon, kAll };

// Returns the first sentence of a command's or option's `doc`, without its full stop.
std::string_view FirstSentence(std::string_view doc);

// Renders the help of the whole program, in lines of at most 80 columns: the common commands and
// the groups, in at most 24 lines; or with kAll every command and what it does.
std::string RenderHelp(const std::vector<Command>& commands, HelpDetail detail);

// Renders the help of one command: usage, what it does, options, variables, an example. A command
// with many options of `run` shows the common ones, by what they are about; with kAll, all.
std::string RenderHelp(const Command& command, HelpDetail detail);

// Returns the help that `words` ask for, those behind `help` or before `--help`: the whole
// program's, a group's (one line per command), or a command's. Fails as SelectCommand() does.
Result<std::string> HelpFor(const std::vector<Command>& commands,
                            const std::vector<std::string>& words, HelpDetail detail);

// Returns help with its headings in bold, for a terminal.
std::string WithBoldHeadings(std::string_view help);

}  // namespace cli
