// SPDX-License-Identifier: Apache-2.0
// The status of a commit in GitLab's pipelines.
#pragma once

#include <string>

#include "base/deadline.h"
#include "forge/gitlab/notes.h"
#include "forge/statuses.h"

namespace forge {

// Sets the status, unless it says the same already. Fails as Client does.
Status KeepGitLabStatus(Client& client, const GitLabProject& project, const CommitStatus& status,
                        Deadline deadline);

}  // namespace forge
