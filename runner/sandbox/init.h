// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/fd.h"
#include "sandbox/agent_process.h"
#include "sandbox/filter/seccomp.h"
#include "sandbox/plan.h"
#include "sandbox/tree.h"

namespace sandbox {

// The resources that the sandbox's first process is born with, besides the plan.
struct InitResources {
  AgentResources agent;
  DiskLayers disk;
  std::vector<Fd> opened;  // Detached mounts, of each step whose source is not come by its path.
  Processors processors = Processors::kFree;
  bool renews = false;  // The network namespace is there, with the gateway's sockets.
};

// The whole life of the sandbox's pid 1: builds the sandbox from inside, starts the agent in it,
// reaps, and ends with the agent or with the supervisor, whichever ends first. When it ends the
// kernel kills everything in the sandbox.
[[noreturn]] void RunInit(const SandboxPlan& plan, InitResources resources);

}  // namespace sandbox
