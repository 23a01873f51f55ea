// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <catch2/catch.hpp>

#include "base/code_of.h"

namespace cli {
namespace {

Result<run::Request> Read(const std::vector<std::string>& words) {
  std::vector<OptionSpec> options;
  for (const RunOption& option : kRunOptions) options.push_back(option.spec);
  return ReadRequest(ParseArguments(options, words).value());
}

TEST_CASE("ReadRequest starts from the defaults and takes what is given") {
  run::Request request = Read({"--timeout", "90s", "--apply", "--", "sh", "-c", "true"}).value();

  CHECK(request.timeout_s == 90);
  CHECK(request.apply);
  CHECK(request.pids == 1024);
  CHECK(request.command == std::vector<std::string>{"sh", "-c", "true"});
}

TEST_CASE("ReadRequest keeps repeated options in order") {
  run::Request request = Read({"--env", "B=2", "--env", "A=1"}).value();

  REQUIRE(request.env.size() == 2);
  CHECK(request.env[0].first == "B");
}

TEST_CASE("ReadRequest refuses a command that is not behind --") {
  Error error = Read({"make"}).error();

  CHECK(error.code == Code::kUsage);
  CHECK(error.what == "unexpected 'make'");
  CHECK(error.hint == "agentic-ci run -- make");
}

TEST_CASE("ReadRequest refuses options that exclude each other") {
  CHECK(CodeOf(Read({"--prompt", "a", "--prompt-file", "b"})) == Code::kUsage);
}

}  // namespace
}  // namespace cli
