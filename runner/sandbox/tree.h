// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/plan.h"

namespace sandbox {

// The directory on the host's disk that holds every writable layer.
struct DiskLayers {
  std::string path;  // Empty if they are in memory.
  Fd tree;           // It as a detached mount, where the sandbox's user cannot walk the path.
};

// The layers that the sandbox writes to; readable through these after it is gone.
struct TreeLayers {
  Fd workspace;  // The upper directory of the workspace.
  Fd all;        // SCRATCH/upper of each overlay, SCRATCH of each directory of the sandbox's own.
};

// Builds the planned file tree in the calling process's own mount namespace and makes it the root.
// Runs in the sandbox's first process, with capabilities in its user namespace only. `opened` are
// detached mounts, one for each step whose source is not come by its path, in their order; `disk`
// is where the writable layers lie.
Result<TreeLayers> BuildTree(const SandboxPlan& plan, DiskLayers disk, std::vector<Fd> opened);

}  // namespace sandbox
