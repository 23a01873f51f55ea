// SPDX-License-Identifier: Apache-2.0
#include "agent/harness.h"

#include <array>

#include "codec/text/nearest.h"

namespace agent {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"claude-code", "command"};

Result<AgentPlan> PlanCommand(const AgentRequest& request) {
  if (request.command.empty()) {
    return Error{Code::kUsage, "no agent and no command to run", "agentic-ci run -- COMMAND"};
  }
  AgentPlan plan;
  plan.argv = request.command;
  if (!request.executable.empty()) plan.argv[0] = request.executable;
  plan.stdin_text = request.prompt;
  return plan;
}

// Where and how to report, for an agent that is asked to find something.
// docs/reference/schemas/findings.schema.json.
constexpr std::string_view kFindingsInstruction =
    "When you are asked to review, or find a problem you do not fix, report it in the file named "
    "by the environment variable AGENTIC_CI_FINDINGS, as JSON: {\"findings\": [{\"path\": "
    "\"src/a.c\", \"line\": 12, \"end_line\": 14, \"severity\": \"error\", \"rule\": "
    "\"short-name\", \"message\": \"what is wrong\", \"suggestion\": \"what these lines should "
    "be replaced by\"}]}. Only message is required; severity is error, warning or note; paths are "
    "relative to the working directory; lines are those of the files before your changes.";

// `claude --help` (2.1.197): -p reads the prompt from standard input when none is on the command
// line; stream-json needs --verbose.
Result<AgentPlan> PlanClaude(const AgentRequest& request) {
  if (request.prompt.empty()) {
    return Error{Code::kUsage, "claude-code needs a task", "--prompt TEXT or --prompt-file FILE"};
  }
  if (!request.has_key) {
    return Error{Code::kSetup, "claude-code needs a credential",
                 "--secret ANTHROPIC_API_KEY@api.anthropic.com"};
  }
  AgentPlan plan;
  plan.argv = {request.executable.empty() ? ProgramOf(request.name) : request.executable, "-p",
               "--output-format", "stream-json", "--verbose",
               // The sandbox is what holds it; its own questions have nobody to answer them.
               "--dangerously-skip-permissions", "--append-system-prompt",
               std::string(kFindingsInstruction)};
  if (!request.model.empty()) {
    plan.argv.push_back("--model");
    plan.argv.push_back(request.model);
  }
  plan.argv.insert(plan.argv.end(), request.command.begin(), request.command.end());
  plan.env = {
      // Stops the telemetry that would carry the key to api.anthropic.com whatever the base URL is.
      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
      {"DISABLE_AUTOUPDATER", "1"},
      {"DISABLE_TELEMETRY", "1"},
      {"DISABLE_ERROR_REPORTING", "1"},
      // Without it --dangerously-skip-permissions is refused for uid 0.
      {"IS_SANDBOX", "1"},
  };
  plan.stdin_text = request.prompt;
  plan.streams_json = true;
  plan.model_hosts = {"api.anthropic.com"};
  return plan;
}

}  // namespace

Result<AgentPlan> PlanAgent(const AgentRequest& request) {
  if (request.name == "command") return PlanCommand(request);
  if (request.name == "claude-code") return PlanClaude(request);
  const std::string nearest = codec::NearestName(request.name, {kNames.begin(), kNames.end()});
  return Error{Code::kUsage, "unknown agent \"" + request.name + "\"",
               "--agent " + (nearest.empty() ? std::string(kNames[0]) : nearest)};
}

std::string ProgramOf(std::string_view agent_name) {
  return agent_name == "claude-code" ? "claude" : "";
}

bool IsModelAlias(std::string_view agent_name, std::string_view model) {
  // "opus", "opusplan", "sonnet[1m]": every model of Anthropic's has the number of its version.
  return agent_name == "claude-code" &&
         model.substr(0, model.find('[')).find_first_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> KeyNames(std::string_view agent_name) {
  if (agent_name != "claude-code") return {};
  return {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
          "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"};
}

}  // namespace agent
