// SPDX-License-Identifier: Apache-2.0
// The description of an agent, as data: policies/agents/ has one file for each that is built in,
// and the first of them says what the keys mean.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/package.h"
#include "base/result.h"
#include "codec/data/yaml.h"

namespace agent {

// The agent that any program can be: it has no description.
inline constexpr char kAnyProgram[] = "command";

using Pairs = std::vector<std::pair<std::string, std::string>>;

// One place where an agent's model may be.
struct ModelAccess {
  std::string provider;           // The provider's name, as in `--provider`.
  std::vector<std::string> keys;  // Variables, any one of which has the credential; not empty.
  // The base URL without the variable; empty if the agent has its own, or none.
  std::string base_url;
  std::string base_url_from;       // A variable; may be empty.
  std::string base_path;           // Appended to either.
  std::vector<std::string> needs;  // Variables whose values are words of this entry.
  std::string api;
  std::string model;            // Without `--model`; if empty, the agent's own default.
  bool model_required = false;  // There is no default.
  Pairs environment;
};

struct AgentDescription {
  std::string name;
  std::string about;
  std::string program;  // Looked up on PATH, or among the programs of `package`.
  std::optional<Package> package;
  std::string install;           // The command that installs it; may be empty.
  std::string tried;             // The version that was tried; may be empty.
  std::string stream = "plain";  // One of StreamNames() (agent/dialect.h).
  bool prompt_argument = false;  // The task is the last argument, not the standard input.
  bool model_aliases = false;
  std::vector<std::string> arguments;
  std::vector<std::string> model_arguments;  // Only with a model.
  // Only where the model's provider must not search the web: they say so to the agent.
  std::vector<std::string> arguments_without_search;
  Pairs environment;
  Pairs files;  // Path below the home directory, and text.
  std::vector<ModelAccess> models;
};

// Reads one agent: a file of its own, which says its name, or with `name` the value of that key in
// a configuration's `agents`, which may be `like` a built-in agent: then its keys replace that
// one's. Fails with kInvalid and "file:line:col: error: what" and a hint.
Result<AgentDescription> ParseAgent(const codec::YamlNode& node, const std::string& file,
                                    const std::string& name = {});

// Parses a configuration's `agents`: each with a name of its own, that no built-in agent has. With
// `errors`, an agent that fails adds its error there, and is left with its name alone.
Result<std::vector<AgentDescription>> ParseAgents(const codec::YamlNode& node,
                                                  const std::string& file,
                                                  std::vector<Error>* errors = nullptr);

// Returns the agent of that name: one of `own`, or one that is built in. Fails with kUsage and the
// nearest name as a hint.
Result<AgentDescription> FindAgentDescription(std::string_view name,
                                              std::span<const AgentDescription> own = {});
// Returns the same as a value that may be missing: the agent `command` has no description.
Result<std::optional<AgentDescription>> DescribeAgent(std::string_view name,
                                                      std::span<const AgentDescription> own = {});
// Returns those that are built in, without `command`.
std::vector<std::string> AgentNames();
// Returns whether `name` may be an agent's: 1-64 of a-z, 0-9 and '-', of which '-' is not the
// first.
bool IsAgentName(std::string_view name);

// The texts that ${name} stands for.
using Words = Pairs;
// Returns `text` with its ${...} replaced; a word that `words` lacks becomes empty.
std::string Expand(std::string_view text, const Words& words);

}  // namespace agent
