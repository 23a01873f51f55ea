// SPDX-License-Identifier: Apache-2.0
#include "cli/github.h"

#include <catch2/catch.hpp>

namespace cli {
namespace {

TEST_CASE("ParseInputs reads an input per option, and an empty one as not given") {
  run::Request request = ParseInputs(R"({"agent": "claude-code", "prompt": "fix\nit", "model": "",
                                         "timeout": "90s", "apply": "true"})")
                             .value();

  CHECK(request.agent == "claude-code");
  CHECK(request.prompt == "fix\nit");
  CHECK(request.model.empty());
  CHECK(request.timeout_s == 90);
  CHECK(request.pids == 1024);
  CHECK(request.apply);
}

TEST_CASE("ParseInputs takes one value per line where several may be given") {
  run::Request request =
      ParseInputs(R"({"secret": "A@a.example\n\n  B=C@b.example  \r\n", "env": "X=1\nY=2"})")
          .value();

  REQUIRE(request.secrets.size() == 2);
  CHECK(request.secrets[1].variable == "C");
  CHECK(request.secrets[1].host == "b.example");
  REQUIRE(request.env.size() == 2);
  CHECK(request.env[1].second == "2");
}

TEST_CASE("ParseInputs takes one argument of the command per line") {
  run::Request request = ParseInputs(R"({"command": "sh\n-c\necho a b; true\n"})").value();

  CHECK(request.command == std::vector<std::string>{"sh", "-c", "echo a b; true"});
}

TEST_CASE("ParseInputs leaves the inputs that action.yml reads itself alone") {
  CHECK(ParseInputs(R"({"path": "/opt/agentic-ci"})").ok());
}

TEST_CASE("ParseInputs says which input is wrong") {
  Error error = ParseInputs(R"({"memory": "4GB"})").error();

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "--memory: '4GB' is not a size, such as 512KiB, 64MiB or 4GiB");
  CHECK(ParseInputs("[]").error().code == Code::kInvalid);
  CHECK_FALSE(ParseInputs(R"({"prompt": "a", "prompt-file": "b"})").ok());
}

TEST_CASE("RunOutputs has every output that action.yml promises") {
  report::RunRecord record;
  record.outcome.kind = report::OutcomeKind::kRefused;
  record.outcome.exit_code = 77;
  record.usage.cost_usd = 0.0425;

  Outputs outputs = RunOutputs(record, "report");

  REQUIRE(outputs.size() == kActionOutputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(outputs[i].first == kActionOutputs[i].name);
  CHECK(outputs[0].second == "77");
  CHECK(outputs[3].second == "report");
  CHECK(outputs[6].second == "0.042500");
}

}  // namespace
}  // namespace cli
