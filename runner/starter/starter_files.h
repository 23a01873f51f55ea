// SPDX-License-Identifier: Apache-2.0
// A repository's first policy, configuration, prompt and workflow.
#pragma once

#include <string>
#include <vector>

#include "starter/repository_facts.h"

namespace starter {

struct StarterRequest {
  RepositoryFacts facts;
  std::string agent;         // The agent, as in --agent.
  std::string provider;      // The provider, as in --provider; empty for `command`.
  std::string install;       // The command that installs the agent; empty for `command`.
  std::string key_variable;  // The variable with its credential.
  std::vector<std::string>
      unknown_here;  // Ecosystems of `facts` that no run on this host can open.
};

struct StarterFile {
  std::string path;  // Relative to the repository's top.
  std::string content;
};

// Returns the files, in the order in which they are best read. Pure.
std::vector<StarterFile> PlanFiles(const StarterRequest& request);

// Returns the task that the configuration has: "review", or "check" for `command`.
std::string TaskOf(const StarterRequest& request);

}  // namespace starter
