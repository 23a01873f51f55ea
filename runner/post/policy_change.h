// SPDX-License-Identifier: Apache-2.0
// Describes for the comment what a pull request would change about agentic-ci's own rules. It is
// shown and has no effect: a run reads them from the base.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/diff_file.h"
#include "forge/forge.h"
#include "forge/reviews.h"

namespace post {

// Returns Markdown, or "" if `diff` has none of those files. Both policies are read from the forge
// and compared (advise::ComparePolicies); of the configuration the added lines are shown.
// `base_commit` gives the commit at the end of the base branch.
Result<std::string> DescribePolicyChange(forge::Forge& forge, const forge::Proposal& proposal,
                                         const std::function<Result<std::string>()>& base_commit,
                                         const std::vector<forge::DiffFile>& diff,
                                         Deadline deadline);

}  // namespace post
