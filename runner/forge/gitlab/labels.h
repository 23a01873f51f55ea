// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/gitlab/notes.h"

namespace forge {

// Adds the labels that the merge request does not have. GitLab creates a label that does not exist.
Status AddGitLabLabels(Client& client, const GitLabProject& project, int64_t number,
                       const std::vector<std::string>& names, Deadline deadline);

}  // namespace forge
