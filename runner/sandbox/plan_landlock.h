// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "sandbox/host.h"
#include "sandbox/plan.h"

namespace sandbox {

// Plans like PlanSandbox(), for tier landlock: rules instead of mounts.
Result<SandboxPlan> PlanLandlock(const SandboxRequest& request, const HostView& host);

}  // namespace sandbox
