// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/plan.h"

namespace sandbox {

// Builds the planned file tree in the calling process's own mount namespace and makes it the root.
// Runs in the sandbox's first process, with capabilities in its user namespace only. `opened` are
// detached mounts, one for each step whose source is not come by its path, in their order. Gives
// the open upper directory of the workspace: what the agent changes appears there and stays
// readable through the descriptor after the sandbox is gone.
Result<Fd> BuildTree(const SandboxPlan& plan, std::vector<Fd> opened);

}  // namespace sandbox
