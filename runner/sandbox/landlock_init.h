// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

#include "sandbox/agent_process.h"
#include "sandbox/plan.h"

namespace sandbox {

// The first process of a sandbox without namespaces: starts the agent, and is where every process
// comes back to whose parent has ended. When the agent or the supervisor has ended it kills all of
// them, then itself. `spared` are the runner's other processes.
[[noreturn]] void RunLandlockInit(const SandboxPlan& plan, AgentResources resources,
                                  std::vector<pid_t> spared);

}  // namespace sandbox
