// SPDX-License-Identifier: Apache-2.0
// The plan of a run's own sandbox: what it shows, and what the agent finds in it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "run/prepare.h"
#include "run/recorder.h"
#include "run/request.h"
#include "sandbox/plan.h"

namespace run {

// Plans the sandbox of `plan`. The report lies in `report_dir` and is not for the agent; `scratch`
// is the directory on a disk of tier landlock, or empty. `authority` gives the run's certificate:
// it is asked last, since the gateway makes it meanwhile.
Result<sandbox::SandboxPlan> PrepareLayout(const Request& request, const Plan& plan,
                                           const std::string& report_dir,
                                           const std::string& scratch,
                                           const std::function<Result<std::string>()>& authority);

// Describes, for --plan-only, what would be done, with no agent and no gateway, whose certificate
// is not known yet.
Result<std::string> DescribePlan(const Request& request, Plan& plan, Recorder& recorder);

}  // namespace run
