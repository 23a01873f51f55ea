// SPDX-License-Identifier: Apache-2.0
#include "agent/harness.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace agent {
namespace {

bool Has(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

TEST_CASE("PlanAgent starts claude headless with its task on standard input") {
  AgentRequest request{.name = "claude-code", .prompt = "fix $(rm -rf /)", .has_key = true};
  AgentPlan plan = PlanAgent(request).value();
  REQUIRE(plan.argv.size() == 8);
  CHECK(plan.argv.back().find("AGENTIC_CI_FINDINGS") != std::string::npos);
  plan.argv.pop_back();
  CHECK(plan.argv == std::vector<std::string>{"claude", "-p", "--output-format", "stream-json",
                                              "--verbose", "--dangerously-skip-permissions",
                                              "--append-system-prompt"});
  CHECK(plan.stdin_text == "fix $(rm -rf /)");
  CHECK(plan.streams_json);
  CHECK(plan.model_hosts == std::vector<std::string>{"api.anthropic.com"});
  CHECK(std::count(plan.env.begin(), plan.env.end(),
                   std::pair<std::string, std::string>("IS_SANDBOX", "1")) == 1);
}

TEST_CASE("PlanAgent hands on the model, the executable and further arguments") {
  AgentRequest request{.name = "claude-code",
                       .prompt = "x",
                       .model = "claude-opus-4-8",
                       .command = {"--max-turns", "3"},
                       .executable = "/opt/claude",
                       .has_key = true};
  AgentPlan plan = PlanAgent(request).value();
  CHECK(plan.argv[0] == "/opt/claude");
  std::vector<std::string> tail(plan.argv.end() - 4, plan.argv.end());
  CHECK(tail == std::vector<std::string>{"--model", "claude-opus-4-8", "--max-turns", "3"});
  CHECK_FALSE(Has(plan.argv, "x"));
}

TEST_CASE("PlanAgent runs a command as it stands") {
  AgentPlan plan = PlanAgent({.prompt = "task", .command = {"sh", "-c", "cat"}}).value();
  CHECK(plan.argv == std::vector<std::string>{"sh", "-c", "cat"});
  CHECK(plan.stdin_text == "task");
  CHECK_FALSE(plan.streams_json);
  CHECK(plan.env.empty());
}

TEST_CASE("PlanAgent refuses what cannot start, with something to type") {
  Result<AgentPlan> unknown = PlanAgent({.name = "claude-cod", .prompt = "x"});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().code == Code::kUsage);
  CHECK(unknown.error().what == "unknown agent \"claude-cod\"");
  CHECK(unknown.error().hint == "--agent claude-code");

  CHECK(PlanAgent({}).error().code == Code::kUsage);
  CHECK(PlanAgent({.name = "claude-code", .has_key = true}).error().code == Code::kUsage);
  Result<AgentPlan> keyless = PlanAgent({.name = "claude-code", .prompt = "x"});
  CHECK(keyless.error().code == Code::kSetup);
  CHECK(keyless.error().hint == "--secret ANTHROPIC_API_KEY@api.anthropic.com");
  CHECK(Has(KeyNames("claude-code"), "ANTHROPIC_API_KEY"));
}

}  // namespace
}  // namespace agent
