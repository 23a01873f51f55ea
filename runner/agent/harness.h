// SPDX-License-Identifier: Apache-2.0
// Plans how to start each agent. Its output is parsed by agent/stream.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/description.h"
#include "base/result.h"

namespace agent {

struct AgentRequest {
  std::string prompt = {};  // The task; `command` gets it on standard input too.
  std::string model = {};   // If empty, the agent's own default.
  std::vector<std::string> command =
      {};  // The command line of `command`; for other agents, further arguments.
  // The program as the sandbox sees it; if empty, it is found by PATH.
  std::string executable = {};
  std::vector<std::string> providers = {};  // The providers of the run (`--provider`).
  Pairs environment = {};                   // The agent's variables that others decide.
  bool searches = false;  // The model's provider may search the web for the agent.
};

// Everything the sandbox must start. Nothing of it passes through a shell.
struct AgentPlan {
  std::vector<std::string> argv;
  Pairs env;                     // Beside the sandbox's own variables.
  Pairs home_files;              // Path below the home directory, and text.
  std::string stdin_text;        // Written to standard input, which is then closed.
  std::string stream = "plain";  // The form in which standard output is read (StreamReader).
  std::string model;             // The model that is asked for; if empty, the agent's own default.
  bool may_be_codex = false;     // It is Codex, or a command that names it.
  // What stands for the model's credential above, and the variable of the sandbox that has it;
  // empty if nothing does.
  std::string key;
  std::string key_name;
  bool streams_json() const { return stream != "plain"; }
};

// Fails with kUsage for a missing task or model, and with kSetup for a missing credential or
// address.
Result<AgentPlan> PlanAgent(const AgentDescription& agent, const AgentRequest& request);
// Plans the start of the agent `command`. Fails with kUsage for a missing command.
Result<AgentPlan> PlanCommand(const AgentRequest& request);

// Returns the access to the agent's model in this run: that of the first of `providers` that has
// one, or else the first access that has a key among `environment`; null if there is neither.
// Borrowed.
const ModelAccess* ChooseAccess(const AgentDescription& agent,
                                const std::vector<std::string>& providers,
                                const Pairs& environment);

// Returns whether `model` is a name that the agent itself turns into a model's: "sonnet" of
// claude-code.
bool IsModelAlias(const AgentDescription& agent, std::string_view model);

}  // namespace agent
