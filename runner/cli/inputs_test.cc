// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"

#include <catch2/catch.hpp>
#include <map>

#include "cli/commands.h"

namespace cli {
namespace {

Result<run::Request> RunInputs(std::string_view json) {
  Inputs inputs = TRY(ParseInputs(json));
  return ReadRunInputs(inputs);
}

forge::EnvironmentReader Environment(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::vector<OptionSpec> RunSpecs() { return SelectCommand(Commands(), {"run"}).value().options; }
std::vector<OptionSpec> PostSpecs() { return SelectCommand(Commands(), {"post"}).value().options; }

TEST_CASE("ReadRunInputs reads an input per option, and an empty one as not given") {
  run::Request request = RunInputs(R"({"agent": "claude-code", "prompt": "fix\nit", "model": "",
                                         "timeout": "90s", "apply": "true"})")
                             .value();

  CHECK(request.agent == "claude-code");
  CHECK(request.prompt == "fix\nit");
  CHECK(request.model.empty());
  CHECK(request.timeout_s == 90);
  CHECK(request.pids == 1024);
  CHECK(request.apply);
}

TEST_CASE("ReadRunInputs takes one value per line where several may be given") {
  run::Request request =
      RunInputs(R"({"secret": "A@a.example\n\n  B=C@b.example  \r\n", "env": "X=1\nY=2"})").value();

  REQUIRE(request.secrets.size() == 2);
  CHECK(request.secrets[1].variable == "C");
  CHECK(request.secrets[1].host == "b.example");
  REQUIRE(request.env.size() == 2);
  CHECK(request.env[1].second == "2");
}

TEST_CASE("ReadRunInputs takes one argument of the command per line") {
  run::Request request = RunInputs(R"({"command": "sh\n-c\necho a b; true\n"})").value();

  CHECK(request.command == std::vector<std::string>{"sh", "-c", "echo a b; true"});
}

TEST_CASE("ReadRunInputs leaves the inputs that action.yml reads itself alone") {
  CHECK(RunInputs(R"({"path": "/opt/agentic-ci"})").ok());
}

TEST_CASE("ReadRunInputs says which input is wrong") {
  Error error = RunInputs(R"({"memory": "4GB"})").error();

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "--memory: '4GB' is not a size, such as 512KiB, 64MiB or 4GiB");
  CHECK(RunInputs("[]").error().code == Code::kInvalid);
  CHECK_FALSE(RunInputs(R"({"prompt": "a", "prompt-file": "b"})").ok());
}

TEST_CASE(
    "ReadInputs takes the component's variables, which are strings, where INPUTS is not set") {
  Inputs inputs = ReadInputs(Environment({{"AGENTIC_CI_INPUT_PROMPT", " fix $HOME\nit "},
                                          {"AGENTIC_CI_INPUT_PIDS", "512 "},
                                          {"AGENTIC_CI_INPUT_PLAN_ONLY", "true "},
                                          {"AGENTIC_CI_INPUT_APPLY", "false "},
                                          {"AGENTIC_CI_INPUT_MODEL", ""},
                                          {"AGENTIC_CI_INPUT_COMMAND", "sh\n-c\nexit 3\n"}}),
                             RunSpecs())
                      .value();
  run::Request request = ReadRunInputs(inputs).value();

  CHECK(request.prompt == " fix $HOME\nit ");
  CHECK(request.pids == 512);
  CHECK(request.plan_only);
  CHECK_FALSE(request.apply);
  CHECK(request.model.empty());
  CHECK(request.command == std::vector<std::string>{"sh", "-c", "exit 3"});
}

TEST_CASE("ReadInputs prefers INPUTS, and fails where there is no input at all") {
  auto read = [](const std::map<std::string, std::string>& variables) {
    return ReadInputs(Environment(variables), RunSpecs());
  };

  CHECK(read({}).error().code == Code::kSetup);
  CHECK(read({{"AGENTIC_CI_INPUT_UNKNOWN", "x"}}).error().code == Code::kSetup);
  CHECK(read({{"INPUTS", "["}}).error().code == Code::kInvalid);
  Inputs inputs = read({{"INPUTS", R"({"model": "a"})"}, {"AGENTIC_CI_INPUT_MODEL", "b"}}).value();
  CHECK(inputs("model") == "a");
}

TEST_CASE("ReadPostInputs makes the arguments that the command line would") {
  auto read = [](std::string_view json) {
    return ReadPostInputs(ParseInputs(json).value(), PostSpecs());
  };
  Arguments arguments =
      read(R"({"report-dir": "out", "number": "7 ", "dry-run": "true", "json": "false",
               "marker": ""})")
          .value();

  CHECK(arguments.operands == std::vector<std::string>{"out"});
  CHECK(arguments.Get("number") == "7");
  CHECK(arguments.Has("dry-run"));
  CHECK_FALSE(arguments.Has("json"));
  CHECK_FALSE(arguments.Has("marker"));
  CHECK(read("{}").value().operands == std::vector<std::string>{"agentic-ci-report"});
  CHECK(read(R"({"dry-run": "yes"})").error().what == "--dry-run: must be true or false");
}

}  // namespace
}  // namespace cli
