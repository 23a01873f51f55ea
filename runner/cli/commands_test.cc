// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <catch2/catch.hpp>
#include <set>

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

TEST_CASE("RenderHelp keeps to 80 columns") {
  std::vector<Command> commands = Commands();
  std::string all = RenderHelp(commands);
  for (const Command& command : commands) all += RenderHelp(command);

  for (size_t start = 0; start < all.size();) {
    size_t end = all.find('\n', start);
    INFO(all.substr(start, end - start));
    CHECK(end - start <= 80);
    start = end + 1;
  }
}

TEST_CASE("RenderHelp lists what the table lists, and no hidden command") {
  std::vector<Command> commands = Commands();
  std::string all = RenderHelp(commands);

  CHECK(all.find("  policy explain URL\n") != std::string::npos);
  CHECK(all.find("  action\n") == std::string::npos);
  CHECK(RenderHelp(commands.front()).find("  --timeout DURATION\n") != std::string::npos);
}

}  // namespace
}  // namespace cli
