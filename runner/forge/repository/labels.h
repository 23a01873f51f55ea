// SPDX-License-Identifier: Apache-2.0
// Labels of a pull request or merge request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/gitlab_notes.h"

namespace forge {

// Whether it can be a label's name: 1 to 50 characters, none of them a control character or a
// comma.
bool ValidLabel(const std::string& name);

// Adds the labels that the pull request does not have. GitHub creates a label that does not exist;
// kInvalid where the forge does not (Gitea), with its name.
Status AddLabels(Client& client, const std::string& repository, int64_t number,
                 const std::vector<std::string>& names, Deadline deadline);

// The same of a merge request. GitLab creates a label that does not exist.
Status AddGitLabLabels(Client& client, const GitLabProject& project, int64_t number,
                       const std::vector<std::string>& names, Deadline deadline);

}  // namespace forge
