// SPDX-License-Identifier: Apache-2.0
// The status of a commit in GitLab's pipelines.
#pragma once

#include <string>

#include "base/deadline.h"
#include "forge/gitlab_notes.h"

namespace forge {

struct GitLabStatus {
  std::string sha;
  std::string ref;          // The branch; may be empty.
  std::string name;         // What tells it from others: a later one takes its place.
  std::string state;        // "success" or "failed".
  std::string description;  // Cut at 255 bytes, GitLab's bound.
  std::string target_url;   // May be empty.
};

// Sets the status, unless it says the same already. Errors as of Client.
Status KeepGitLabStatus(Client& client, const GitLabProject& project, const GitLabStatus& status,
                        Deadline deadline);

}  // namespace forge
