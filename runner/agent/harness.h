// SPDX-License-Identifier: Apache-2.0
// How to start each agent. How to read what it writes is agent/stream.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/stream.h"
#include "agent/summary.h"
#include "base/result.h"

namespace agent {

struct AgentRequest {
  std::string name = "command";  // "claude-code" or "command".
  std::string prompt = {};       // The task; `command` gets it on standard input too.
  std::string model = {};        // Empty: the agent's own default.
  std::vector<std::string> command =
      {};                       // What `command` runs; for other agents: further arguments.
  std::string executable = {};  // Path of ProgramOf(name) as the sandbox sees it; empty: by PATH.
  bool has_key = false;         // The agent's environment names a credential (KeyNames).
};

// Everything the sandbox must start. Nothing of it passes through a shell.
struct AgentPlan {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;  // Beside the sandbox's own variables.
  std::string stdin_text;                // Written to standard input, which is then closed.
  bool streams_json = false;             // Standard output is JSON lines (agent.jsonl).
  std::vector<std::string> model_hosts;  // Hosts of the model's service, when nothing redirects it.
};

// Fails with kUsage for an unknown name (the hint is the nearest one), a missing command or a
// missing prompt, and with kSetup for a missing credential.
Result<AgentPlan> PlanAgent(const AgentRequest& request);

// The program to look for: "claude" for claude-code; empty for `command`.
std::string ProgramOf(std::string_view agent_name);

// Whether `model` is a name that the agent itself turns into a model's: "sonnet" of claude-code.
bool IsModelAlias(std::string_view agent_name, std::string_view model);

// Variables any one of which gives the agent its credential (or names another provider).
// Empty for `command`.
std::vector<std::string> KeyNames(std::string_view agent_name);

}  // namespace agent
