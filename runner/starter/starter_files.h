// SPDX-License-Identifier: Apache-2.0
// A repository's first policy, configuration, prompt and workflow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "starter/repository_facts.h"

namespace starter {

// What starts the task.
enum class StartOn {
  kLabel,    // The label `agent` of a pull request, and each push to one that has it.
  kPush,     // Each push to a pull request.
  kCommand,  // A comment on a pull request whose first line begins with "/" and the task's name.
};

struct StarterRequest {
  RepositoryFacts facts;
  StartOn on = StartOn::kLabel;
  std::string agent;         // The agent, as in --agent.
  std::string provider;      // The provider, as in --provider; empty for `command`.
  std::string install;       // The command that installs the agent; empty for `command`.
  std::string key_variable;  // The variable with its credential.
  // "KEY: VALUE" for each key of the identity that can be in its place; empty if the provider takes
  // none.
  std::vector<std::string> identity;
  bool has_pipeline = false;  // The project has one of its own in Forge::file.
  // The release that the workflow uses: "acme/agentic-ci", and its commit. Both are empty where the
  // reader is to say.
  std::string release_path;
  std::string release_commit;
  std::vector<std::string>
      unknown_here;  // Ecosystems of `facts` that no run on this host can open.
};

struct StarterFile {
  std::string path;  // Relative to the repository's top.
  std::string content;
};

// Returns the files, in the order in which they are best read. Pure.
std::vector<StarterFile> PlanFiles(const StarterRequest& request);

// Returns whether the agent has a model, and so a prompt, a provider and a key.
bool HasModel(const StarterRequest& request);

// Parses "label", "push" or "command". Fails with kUsage, also for what the forge does not start
// pipelines on.
Result<StartOn> ParseStartOn(std::string_view name, const Forge& forge);

// Takes "acme/agentic-ci@COMMIT" apart for `request`; on GitLab the project may be below several
// groups. Fails with kUsage for anything else.
Status TakeRelease(std::string_view release, StarterRequest* request);

// Returns what starts the task, as a person would say it.
std::string DescribeStart(const StarterRequest& request);

// Returns the task that the configuration has: "review", or "check" for `command`.
std::string TaskOf(const StarterRequest& request);

}  // namespace starter
