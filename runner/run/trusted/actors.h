// SPDX-License-Identifier: Apache-2.0
// Judges whether everyone who had a part in starting a run may have its secrets.
#pragma once

#include <functional>
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

// Judges the actors: `trust` stands unless one of `event.actors` may not write to the repository
// and is not listed in `bots` (the configuration's, each "NAME[bot]"). An application is trusted by
// that list alone, and a person never by it. Events that take write access are not asked about.
// Without a `reader` (no token), people are believed in events about a branch of the repository,
// and nowhere else; applications never. Errors are those of `reader`: what is not known stops the
// run.
Result<Trust> JudgeActors(const forge::Event& event, const Trust& trust,
                          const std::vector<std::string>& bots, const PermissionReader& reader);

// Returns whether `name` can be an entry of `bots`: a named application, neither a person nor a
// pattern.
bool ValidBot(std::string_view name);

struct ForgeAccess {
  Secret token;
  std::string ca_file;  // If empty, the system's.
  net::Proxy proxy;
};

// Asks the forge of `event` what the event does not say: where the head of the pull request is that
// a comment is about (`event` then has it), and what its actors may do.
Result<Trust> AskForge(forge::Event& event, const std::vector<std::string>& bots,
                       ForgeAccess access, Deadline deadline);

}  // namespace run
