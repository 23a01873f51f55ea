// SPDX-License-Identifier: Apache-2.0
// Applies a task of the configuration to a request.
#pragma once

#include "base/result.h"
#include "change/repository.h"
#include "forge/event.h"
#include "forge/event_text.h"
#include "run/request.h"
#include "run/trusted/config.h"
#include "run/trusted/trusted_file.h"

namespace run {

// The values that tasks are chosen by and that their prompts speak of. Borrows all.
struct TaskSources {
  const Config& config;
  const forge::Event& event;
  const forge::EventText& text;
  const change::Repository* repository;  // Null for a directory without git.
  const TrustedRef& ref;
  const change::HeadFacts* local;  // Of a run outside of CI, in place of the event; may be null.
};

// Returns the checks that LoadConfig() makes of values. Borrows `rules`.
ConfigChecks CheckBy(const OptionRules& rules);

// Returns the task that `request` names, or, if it names neither a task nor an agent, a command or
// an image and the configuration has tasks, the one for the event; null if there is none. Fails as
// FindTask() and ChooseTask() do, and with kNothingToDo and what it would do if the pull request is
// what brings the configuration.
Result<const Task*> SelectTask(const TaskSources& sources, const OptionRules& rules,
                               const Request& request);

// Returns what stands for the event of a run that none started; nullopt for the others. A ref that
// the policy is to be read from is also the one to compare with. `repository` may be null.
Result<std::optional<change::HeadFacts>> DescribeLocal(const forge::Event& event,
                                                       const Request& request,
                                                       const change::Repository* repository);

// Returns that task, after setting what the command line did not give, the prompt's variables
// filled in: outside of CI, from what the checkout's branch changes. Fails with kUsage for options
// that exclude each other, too; if a prompt or a choice needs commits that are not there; and
// outside of CI with kInvalid for a prompt about a difference that is empty.
Result<const Task*> TakeTask(const TaskSources& sources, const OptionRules& rules,
                             Request* request);

}  // namespace run
