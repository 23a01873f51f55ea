// SPDX-License-Identifier: Apache-2.0
// Reads a person's permission on a repository from the forge: GitHub, Gitea and Forgejo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "codec/data/json.h"
#include "forge/client.h"
#include "forge/event.h"

namespace forge {

enum class Permission { kNone, kRead, kWrite };

// Reads the permission of `login`, roles mapped to the permission they include: triage is kRead,
// maintain kWrite. Someone who is not known to the repository has kNone. Any other failure is an
// error.
Result<Permission> ReadPermission(Client& client, const std::string& repository,
                                  const std::string& login, Deadline deadline);

// Returns everyone who has a part in this run: who triggered it (and this attempt of it), who wrote
// the comment or the review it answers, and who triggered the run that a workflow_run follows. Any
// bytes, each once.
std::vector<std::string> ReadActors(const EnvironmentReader& environment,
                                    const codec::Json& payload);

}  // namespace forge
