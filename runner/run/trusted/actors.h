// SPDX-License-Identifier: Apache-2.0
// Judges whether everyone who had a part in starting a run may have its secrets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "forge/event.h"
#include "forge/permission.h"
#include "net/proxy.h"
#include "run/trusted/trust.h"

namespace run {

// Returns the permission that the forge gives a login: forge::ReadPermission().
using PermissionReader = std::function<Result<forge::Permission>(const std::string& login)>;

// What counts under `forks: model` besides the event.
struct ForkRun {
  std::string action;       // forge::EventText::action.
  std::string head;         // The commit that is checked out; empty if there is none.
  bool has_budget = false;  // Of tokens, dollars or requests.
};

// Judges the actors: `trust` stands unless one of `event.actors` may not write to the repository
// and is not listed in `bots` (the configuration's, each "NAME[bot]"). An application is trusted by
// that list alone, and a person never by it. Events that take write access are not asked about.
// Without a `reader` (no token), people are believed in events about a branch of the repository,
// and nowhere else; applications never. Errors are those of `reader`: what is not known stops the
// run.
//
// With `fork`, a run that is not trusted for being about a fork's pull request may have its model
// (Trust::model), where a person who may write to the repository has labeled the pull request
// (`pull_request_target` with `labeled`), the checkout is the commit that was labeled, and the run
// has a budget; otherwise the reason names what is missing.
Result<Trust> JudgeActors(const forge::Event& event, const Trust& trust,
                          const std::vector<std::string>& bots, const PermissionReader& reader,
                          const std::optional<ForkRun>& fork = std::nullopt);

// Returns whether `name` can be an entry of `bots`: a named application, neither a person nor a
// pattern.
bool ValidBot(std::string_view name);

struct ForgeAccess {
  Secret token;
  std::string ca_file;  // If empty, the system's.
  net::Proxy proxy;
};

// Asks the forge of `event` what the event does not say: where the head of the pull request is that
// a comment is about (`event` then has it), and what its actors may do. `fork` is there under
// `forks: model`.
Result<Trust> AskForge(forge::Event& event, const std::vector<std::string>& bots,
                       const std::optional<ForkRun>& fork, ForgeAccess access, Deadline deadline);

}  // namespace run
