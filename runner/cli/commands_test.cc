// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "cli/help.h"

namespace cli {
namespace {

TEST_CASE("every option of every command has a kebab-case name and a doc of whole sentences") {
  for (const Command& command : Commands()) {
    std::set<std::string_view> names;
    CHECK(command.doc.ends_with('.'));
    for (const OptionSpec& option : command.options) {
      INFO(command.name << " --" << option.name);
      CHECK(WellFormed(option));
      CHECK(names.insert(option.name).second);
    }
    for (const VariableSpec& variable : command.variables) CHECK(variable.doc.ends_with('.'));
  }
}

TEST_CASE("SelectCommand takes one word or two") {
  CHECK(SelectCommand(Commands(), {"run", "policy"}).value().name == "run");
  CHECK(SelectCommand(Commands(), {"policy", "check", "x"}).value().name == "policy check");
}

TEST_CASE("SelectCommand names the nearest command for an unknown one") {
  Error error = SelectCommand(Commands(), {"policy", "chekc"}).error();

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "unknown command 'policy chekc'");
  CHECK(error.hint == "agentic-ci policy check");
  CHECK(SelectCommand(Commands(), {"rnu", "x"}).error().hint == "agentic-ci run");
  CHECK(SelectCommand(Commands(), {"policy"}).error().what == "unknown command 'policy'");
  CHECK(SelectCommand(Commands(), {"policy"}).error().hint == "agentic-ci policy --help");
  CHECK(SelectCommand(Commands(), {"polcy", "check"}).error().hint == "agentic-ci policy");
  CHECK(SelectCommand(Commands(), {"init"}).error().hint == "agentic-ci config init");
  CHECK(SelectCommand(Commands(), {"version"}).error().hint == "agentic-ci --version");
  CHECK(SelectCommand(Commands(), {}).error().what == "a command is missing");
}

TEST_CASE("A command has a function, an example, and a first sentence that fits a line") {
  for (const Command& command : Commands()) {
    CAPTURE(command.name);
    CHECK(command.carry_out != nullptr);
    if (command.hidden) continue;
    CHECK(FirstSentence(command.doc).size() <= 57);
    CHECK(command.example.find("agentic-ci " + std::string(command.name)) != std::string::npos);
  }
}

TEST_CASE("Help fits a screen: 24 lines of the program, 50 of `run`") {
  auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::vector<Command> commands = Commands();
  const std::string help = RenderHelp(commands, HelpDetail::kCommon);
  CHECK(lines(help) <= 24);
  const std::string run = RenderHelp(commands.front(), HelpDetail::kCommon);
  CHECK(lines(run) <= 50);
  CHECK(run.find("--watch-sent") == std::string::npos);
  CHECK(RenderHelp(commands.front(), HelpDetail::kAll).find("--watch-sent") != std::string::npos);
  // Each command is in one group.
  for (const Command& command : commands) {
    if (command.hidden) continue;
    const std::string word(command.name.substr(0, command.name.find(' ')));
    CAPTURE(word);
    CHECK(help.find(" " + word) != std::string::npos);
  }
}

TEST_CASE("RenderHelp keeps to 80 columns") {
  std::vector<Command> commands = Commands();
  std::string all;
  for (HelpDetail detail : {HelpDetail::kCommon, HelpDetail::kAll}) {
    all += RenderHelp(commands, detail);
    for (const Command& command : commands) all += RenderHelp(command, detail);
    for (const char* word : {"policy", "sandbox", "eval", "image", "config"}) {
      all += HelpFor(commands, {word}, detail).value();
    }
  }

  for (size_t start = 0; start < all.size();) {
    size_t end = all.find('\n', start);
    INFO(all.substr(start, end - start));
    CHECK(end - start <= 80);
    start = end + 1;
  }
}

TEST_CASE("RenderHelp lists what the table lists, and no hidden command") {
  std::vector<Command> commands = Commands();
  std::string all = RenderHelp(commands, HelpDetail::kAll);

  CHECK(all.find("  policy explain URL\n") != std::string::npos);
  CHECK(all.find("  action\n") == std::string::npos);
  CHECK(RenderHelp(commands.front(), HelpDetail::kAll).find("  --timeout DURATION\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace cli
