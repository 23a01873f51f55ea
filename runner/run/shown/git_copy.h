// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/shown/git_files.h"
#include "sandbox/plan.h"

namespace run {

// Returns, for a tier that cannot lay anything over the host's repository, the files of a `.git`
// directory that takes the place of the checkout's `.git` file, relative to the checkout. It has
// the references, index and configuration (without credentials) of the repository, and borrows its
// objects. Leaves out what belongs to other worktrees, and operations in progress such as a merge.
// `checkout` is the checkout's canonical path. Fails if a file cannot be read or is larger than any
// that is seen in practice.
Result<std::vector<sandbox::WorkspaceFile>> CopyGitDirectory(const GitFiles& git,
                                                             const std::string& checkout);

}  // namespace run
