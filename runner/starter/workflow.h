// SPDX-License-Identifier: Apache-2.0
// A repository's first workflow (GitHub, Gitea, Forgejo) or pipeline (GitLab).
#pragma once

#include <string>
#include <string_view>

#include "starter/starter_files.h"

namespace starter {

// Returns the file of the forge in `request`. Pure.
StarterFile PlanCi(const StarterRequest& request);

// Forge::render of GitHub, Gitea and Forgejo, and of GitLab.
std::string RenderWorkflow(const StarterRequest& request);
std::string RenderGitLab(const StarterRequest& request);

// Returns whether `text` is a pipeline that PlanCi() has written, which is not the project's own.
bool IsOwnPipeline(std::string_view text);

}  // namespace starter
