// SPDX-License-Identifier: Apache-2.0
#include "agent/harness.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "agent/dialect.h"

namespace agent {
namespace {

bool Has(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

const Pairs kAnthropic = {{"ANTHROPIC_API_KEY", "placeholder"}};

std::string TextOf(const Pairs& pairs, const std::string& name) {
  for (const auto& [known, text] : pairs) {
    if (known == name) return text;
  }
  return "(none)";
}

Result<AgentPlan> Plan(std::string_view name, const AgentRequest& request) {
  AgentDescription agent = TRY(FindAgentDescription(name));
  return PlanAgent(agent, request);
}

TEST_CASE("PlanAgent starts claude headless with its task on standard input") {
  AgentRequest request{.prompt = "fix $(rm -rf /)", .environment = kAnthropic};
  AgentPlan plan = Plan("claude-code", request).value();
  REQUIRE(plan.argv.size() == 9);
  CHECK(plan.argv.back() == "--disallowedTools=WebSearch");
  plan.argv.pop_back();
  CHECK(plan.argv.back().find("AGENTIC_CI_FINDINGS") != std::string::npos);
  plan.argv.pop_back();
  CHECK(plan.argv == std::vector<std::string>{"claude", "-p", "--output-format", "stream-json",
                                              "--verbose", "--dangerously-skip-permissions",
                                              "--append-system-prompt"});
  CHECK(plan.stdin_text == "fix $(rm -rf /)");
  CHECK(plan.streams_json());
  CHECK(TextOf(plan.env, "IS_SANDBOX") == "1");
}

TEST_CASE("PlanAgent leaves an agent its search where the model's provider may search") {
  AgentRequest request{.prompt = "x", .environment = kAnthropic, .searches = true};
  CHECK_FALSE(Has(Plan("claude-code", request).value().argv, "--disallowedTools=WebSearch"));
  request.searches = false;
  CHECK(Has(Plan("claude-code", request).value().argv, "--disallowedTools=WebSearch"));
}

TEST_CASE("PlanAgent hands on the model, the executable and further arguments") {
  AgentRequest request{.prompt = "x",
                       .model = "claude-opus-4-8",
                       .command = {"--max-turns", "3"},
                       .executable = "/opt/claude",
                       .environment = kAnthropic};
  AgentPlan plan = Plan("claude-code", request).value();
  CHECK(plan.argv[0] == "/opt/claude");
  std::vector<std::string> tail(plan.argv.end() - 4, plan.argv.end());
  CHECK(tail == std::vector<std::string>{"--model", "claude-opus-4-8", "--max-turns", "3"});
  CHECK_FALSE(Has(plan.argv, "x"));
  CHECK(plan.model == "claude-opus-4-8");
}

TEST_CASE("PlanCommand runs a command as it stands") {
  AgentPlan plan = PlanCommand({.prompt = "task", .command = {"sh", "-c", "cat"}}).value();
  CHECK(plan.argv == std::vector<std::string>{"sh", "-c", "cat"});
  CHECK(plan.stdin_text == "task");
  CHECK_FALSE(plan.streams_json());
  CHECK(plan.env.empty());
  CHECK(plan.home_files.empty());
}

TEST_CASE("An agent is Codex by its program, and a command by any of its words") {
  AgentDescription agent;
  agent.name = agent.program = "mine";
  agent.prompt_argument = true;
  AgentRequest request{.prompt = "ask codex", .executable = "/opt/codex/bin/mine"};
  CHECK_FALSE(PlanAgent(agent, request).value().may_be_codex);
  request.executable = "/opt/bin/codex-2";
  CHECK(PlanAgent(agent, request).value().may_be_codex);
  request.executable = "";
  agent.stream = "codex";
  CHECK(PlanAgent(agent, request).value().may_be_codex);
  request.command = {"sh", "-c", "npx codex exec"};
  CHECK(PlanCommand(request).value().may_be_codex);
  request.command = {"cat"};
  CHECK_FALSE(PlanCommand(request).value().may_be_codex);
}

TEST_CASE("A task that no argument can hold is refused, with the remedy") {
  AgentDescription agent;
  agent.name = agent.program = "mine";
  agent.prompt_argument = true;
  AgentRequest request{.prompt = std::string(131071, 'x')};
  CHECK(PlanAgent(agent, request).ok());
  request.prompt += 'x';
  CHECK(PlanAgent(agent, request).error().hint.find("prompt: stdin") != std::string::npos);
  request.prompt = std::string("a\0b", 3);
  CHECK(PlanAgent(agent, request).error().code == Code::kInvalid);
  agent.prompt_argument = false;
  CHECK(PlanAgent(agent, request).ok());
}

TEST_CASE("PlanAgent refuses what cannot start, with something to type") {
  Result<AgentPlan> unknown = Plan("claude-cod", {.prompt = "x"});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().code == Code::kUsage);
  CHECK(unknown.error().what == "unknown agent \"claude-cod\"");
  CHECK(unknown.error().hint == "--agent claude-code");
  CHECK(Plan("claude", {.prompt = "x"}).error().hint == "--agent claude-code");
  CHECK(Plan("xyzzy", {.prompt = "x"}).error().hint.starts_with("one of: claude-code"));

  CHECK(PlanCommand({}).error().code == Code::kUsage);
  CHECK(Plan("claude-code", {.environment = kAnthropic}).error().code == Code::kUsage);
  Result<AgentPlan> keyless = Plan("claude-code", {.prompt = "x"});
  CHECK(keyless.error().code == Code::kSetup);
  CHECK(keyless.error().hint == "--provider anthropic or bedrock or vertex");
  Result<AgentPlan> other = Plan("gemini", {.prompt = "x", .environment = kAnthropic});
  CHECK(other.error().hint == "--provider gemini or vertex");
}

TEST_CASE("Every built-in agent can be planned with each of its providers") {
  const std::vector<std::string_view> streams = StreamNames();
  REQUIRE_FALSE(AgentNames().empty());
  for (const std::string& name : AgentNames()) {
    AgentDescription agent = FindAgentDescription(name).value();
    CHECK(agent.name == name);
    CHECK(std::find(streams.begin(), streams.end(), agent.stream) != streams.end());
    REQUIRE_FALSE(agent.models.empty());
    for (const ModelAccess& access : agent.models) {
      INFO(name << " " << access.provider);
      AgentRequest request{.prompt = "task", .providers = {access.provider}};
      request.environment = {{access.keys[0], "openshell:resolve:env:KEY"}};
      if (access.model_required) request.model = "a-model";
      if (access.base_url.empty() && !access.base_url_from.empty()) {
        CHECK(PlanAgent(agent, request).error().code == Code::kSetup);
        request.environment.emplace_back(access.base_url_from, "https://models.example.com/v1/");
      }
      for (const std::string& variable : access.needs) {
        CHECK(PlanAgent(agent, request).error().hint == "export " + variable + "=...");
        request.environment.emplace_back(variable, "value");
      }
      AgentPlan plan = PlanAgent(agent, request).value();
      CHECK(plan.stdin_text == "task");
      for (const auto* pairs : {&plan.env, &plan.home_files}) {
        for (const auto& [key, text] : *pairs) CHECK(text.find("${") == std::string::npos);
      }
      for (const std::string& text : plan.argv) CHECK(text.find("${") == std::string::npos);
    }
  }
}

TEST_CASE("An agent is told the address, the placeholder and the model of its provider") {
  AgentRequest request{.prompt = "x", .providers = {"github", "anthropic"}};
  request.environment = {{"ANTHROPIC_API_KEY", "placeholder"},
                         {"ANTHROPIC_BASE_URL", "http://host.openshell.internal:8080/"}};
  AgentPlan plan = Plan("opencode", request).value();
  const std::string file = TextOf(plan.home_files, ".config/opencode/opencode.json");
  CHECK(file.find(R"("baseURL": "http://host.openshell.internal:8080/v1")") != std::string::npos);
  CHECK(file.find(R"("apiKey": "placeholder")") != std::string::npos);
  CHECK(file.find(R"("npm": "@ai-sdk/anthropic")") != std::string::npos);
  CHECK(plan.model == "claude-sonnet-4-5");
  CHECK(plan.argv.back() == "agentic-ci/claude-sonnet-4-5");
}

TEST_CASE("A project and a region are parts of the address, and nothing else can be one") {
  AgentRequest request{.prompt = "x", .providers = {"vertex"}};
  request.environment = {{"GOOGLE_CLOUD_PROJECT", "p-1"},
                         {"GOOGLE_CLOUD_LOCATION", "europe-west1"}};
  const std::string file =
      TextOf(Plan("opencode", request).value().home_files, ".config/opencode/opencode.json");
  CHECK(file.find(R"("baseURL": "https://europe-west1-aiplatform.googleapis.com/v1/projects/p-1/)"
                  R"(locations/europe-west1/publishers/google")") != std::string::npos);
  for (const char* odd : {"a/b", "a\"b", "a.example.com#", "..", "${key}", "a b"}) {
    request.environment[1].second = odd;
    CHECK(Plan("opencode", request).error().code == Code::kSetup);
  }
}

TEST_CASE("The provider of a run takes precedence over keys that are set") {
  AgentDescription agent = FindAgentDescription("pi").value();
  const Pairs both = {{"ANTHROPIC_API_KEY", "a"}, {"OPENAI_API_KEY", "b"}};
  CHECK(ChooseAccess(agent, {"openai"}, both)->provider == "openai");
  CHECK(ChooseAccess(agent, {"github", "gemini", "openai"}, both)->provider == "gemini");
  CHECK(ChooseAccess(agent, {"github"}, both)->provider == "anthropic");
  CHECK(ChooseAccess(agent, {}, {}) == nullptr);
}

TEST_CASE("No model and no address can end the text that it stands in") {
  AgentRequest request{.prompt = "x", .providers = {"openai"}};
  request.environment = {{"OPENAI_API_KEY", "placeholder"}};
  for (const char* model : {"a\"b", "a b", "a\\b", "a\nb", "\xc3\xa9"}) {
    request.model = model;
    CHECK(Plan("codex", request).error().code == Code::kUsage);
  }
  request.model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
  CHECK(Plan("codex", request).ok());
  request.environment.emplace_back("OPENAI_BASE_URL", "https://a/\",wire_api=\"x");
  CHECK(Plan("codex", request).error().code == Code::kSetup);
}

std::string ErrorOf(const std::string& yaml) {
  Result<codec::YamlNode> node = codec::ParseYaml(yaml, "a.yml");
  Result<AgentDescription> agent = ParseAgent(node.value(), "a.yml");
  if (agent.ok()) return "accepted";
  Error error = agent.error();
  return error.what + (error.hint.empty() ? "" : "; " + error.hint);
}

Result<std::vector<AgentDescription>> OwnAgents(const std::string& yaml) {
  codec::YamlNode node = TRY(codec::ParseYaml(yaml, "a.yml"));
  return ParseAgents(node, "a.yml");
}

TEST_CASE("An agent of a configuration is found and planned like one that is built in") {
  const std::vector<AgentDescription> own =
      OwnAgents(
          "mine:\n  program: my-agent\n  prompt: argument\n  arguments: [--task]\n"
          "  model_arguments: ['--model=${model}']\n  files: {.mine/rc: '${findings}'}\n")
          .value();
  AgentDescription agent = FindAgentDescription("mine", own).value();
  CHECK(FindAgentDescription("pi", own).value().program == "pi");
  CHECK(FindAgentDescription("mime", own).error().hint == "--agent mine");
  CHECK_FALSE(DescribeAgent("command", own).value().has_value());
  AgentPlan plan = PlanAgent(agent, {.prompt = "do it", .model = "m"}).value();
  CHECK(plan.argv == std::vector<std::string>{"my-agent", "--task", "--model=m", "do it"});
  CHECK(plan.stdin_text.empty());
  CHECK_FALSE(plan.streams_json());
  CHECK(TextOf(plan.home_files, ".mine/rc").find("AGENTIC_CI_FINDINGS") != std::string::npos);
}

TEST_CASE("An agent that is like a built-in one has what it does not say itself from that one") {
  const AgentDescription codex = FindAgentDescription("codex").value();
  const AgentDescription mine =
      OwnAgents("mine: {like: codex, program: /opt/codex/bin/codex, environment: {A: b}}")
          .value()
          .front();
  CHECK(mine.name == "mine");
  CHECK(mine.program == "/opt/codex/bin/codex");
  CHECK(mine.environment == Pairs{{"A", "b"}});
  CHECK(mine.stream == "codex");
  CHECK(mine.arguments == codex.arguments);
  CHECK(mine.models.size() == codex.models.size());
  Result<std::vector<AgentDescription>> unknown = OwnAgents("mine: {like: codx}");
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().what == "a.yml:1:14: error: no built-in agent is called 'codx'");
}

TEST_CASE("A configuration's agents have names of their own") {
  for (const char* name : {"claude-code", "command", "-x", "Mine", "a_b", "''"}) {
    INFO(name);
    Result<std::vector<AgentDescription>> refused = OwnAgents(std::string(name) + ": {program: x}");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().what.starts_with("a.yml:1:1: error: "));
  }
  CHECK_FALSE(OwnAgents("mine: {program: x, agent: other}").ok());
  CHECK_FALSE(OwnAgents("mine: {about: nothing to start}").ok());
  CHECK_FALSE(OwnAgents("[mine]").ok());
}

TEST_CASE("A description that is not understood is refused with its place") {
  const std::string start = "agent: mine\nprogram: x\n";
  CHECK(ErrorOf(start) == "accepted");
  CHECK(ErrorOf("program: x\n").starts_with("a.yml:1:1: error: "));
  CHECK(ErrorOf(start + "promt: stdin\n") ==
        "a.yml:3:1: error: unknown key 'promt' in an agent; write 'prompt:'");
  CHECK(ErrorOf(start + "stream: codx\n").starts_with("a.yml:3:9: error: "));
  CHECK(ErrorOf(start + "arguments: ['${modle}']\n")
            .starts_with("a.yml:3:13: error: unknown word '${modle}'"));
  CHECK(ErrorOf(start + "arguments: ['${model']\n").starts_with("a.yml:3:13: error: "));
  for (const char* path : {"/etc/passwd", "../x", "a/../b", "a//b", "a/", "."}) {
    INFO(path);
    CHECK(ErrorOf(start + "files: {\"" + path + "\": x}\n")
              .find("is not a path relative to the home directory") != std::string::npos);
  }
  CHECK(ErrorOf(start + "environment: {A-B: x}\n").find("is not a valid variable name") !=
        std::string::npos);
  CHECK(ErrorOf(start + "models: [{provider: openai}]\n").find("'keys'") != std::string::npos);
  CHECK(ErrorOf("agent: mine\nprogram: ./x\n").starts_with("a.yml:2:10: error: "));
}

}  // namespace
}  // namespace agent
