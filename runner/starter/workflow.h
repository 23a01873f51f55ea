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

// Returns whether the repository at `top` has a file in the place of Forge::file that PlanCi() has
// not written: the project's own, also where it cannot be read.
bool HasPipeline(const std::string& top, const Forge& forge);

}  // namespace starter
