// SPDX-License-Identifier: Apache-2.0
// `tasks` of the configuration: what an agent is asked to do, by name, and at which events.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "change/protected_path.h"
#include "codec/data/position.h"
#include "codec/data/yaml.h"
#include "run/trusted/config_reader.h"
#include "run/trusted/gates.h"
#include "run/trusted/prompt.h"

namespace run {

// An option of `run` that a task sets, as the command line would be given it.
struct TaskOption {
  std::string option;  // "max-tokens".
  std::string text;
  codec::Position at;
};

// One of `events`: the forge's name for it, and its activity where one is named
// ("pull_request.labeled").
struct TaskEvent {
  std::string name;
  std::string action;  // Empty for any.
};

// Every list that is not empty must have an entry that holds.
struct TaskWhen {
  std::vector<TaskEvent> events;
  std::vector<std::string> labels;
  std::vector<std::string>
      commands;  // The beginnings of the first line of a new comment: "/review".
  std::vector<change::PathRule> paths;
};

// `checks`: what must succeed over the agent's patch (run/checks.h).
struct TaskChecks {
  std::vector<std::string> scripts;   // The scripts of `run`, each for a shell of its own.
  std::string policy_file;            // A file of the same commit; if empty, the run's policy.
  std::string policy;                 // Its text.
  std::optional<TaskOption> timeout;  // The time for each script; if nullopt, the run's.
};

struct Task {
  std::string name;
  codec::Position at;
  std::vector<TaskOption> options;
  std::vector<std::string> command;
  std::optional<PromptTemplate> prompt;
  std::string policy;             // A policy file of the same commit; if empty, the repository's.
  std::string prompt_file;        // The file it comes from; if empty, the configuration itself.
  codec::Position prompt_at;      // The place of either key.
  Gates gates;                    // Its paths add to the configuration's, its limits replace them.
  std::vector<std::string> post;  // Parts of forge::kPostedParts, or "none" alone.
  std::optional<TaskChecks> checks;
  std::optional<TaskWhen> when;  // If nullopt, it runs only by name.
};

// Parses the value of `tasks`. Fails with kInvalid if it is not a mapping; keeps everything else
// that is not understood.
Result<std::vector<Task>> ParseTasks(const codec::YamlNode& node, ConfigReader* reader);

// The event, as far as `when` is concerned.
struct Occasion {
  std::string event;
  std::string action;
  std::vector<std::string> labels;
  std::string comment;
  // The paths that the proposal changes; asked only by a task that names paths.
  std::function<Result<std::vector<std::string>>()> paths;
};

// Returns the one task that is for this occasion. Fails with kNothingToDo if there is none, with
// the condition of each that does not hold ("task fix: labels: [agent], was 'bug'"); with kSetup if
// no task has any, or if several are, with the names; with kUsage if nothing happened (no event).
Result<const Task*> ChooseTask(const std::vector<Task>& tasks, const Occasion& occasion);

// Returns the task called `name`. Fails with kNotFound and the nearest name.
Result<const Task*> FindTask(const std::vector<Task>& tasks, const std::string& name);

// The keys of a task that are options of `run`: documentation and the JSON Schema name them too.
struct TaskKey {
  std::string_view key;     // "max_tokens".
  std::string_view option;  // "max-tokens".
  enum class Shape { kText, kTextOrList } shape = Shape::kText;
};
std::span<const TaskKey> TaskKeys();
std::span<const TaskKey> TaskLimits();  // Beneath `limits`.
std::span<const std::string_view> TaskEvents();
// Returns the names that a task's `post` may list.
std::vector<std::string_view> TaskPosts();
inline constexpr size_t kTaskChecksMax = 16;

}  // namespace run
