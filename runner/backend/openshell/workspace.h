// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "run/prepare.h"

namespace openshell {

// Copies the checkout into the new directory `to`, as the agent is to have it: without the
// credentials that git's configuration and CI's files hold, with the trusted commit's agent
// instructions, and without the report. kUnsupported: it is larger than `bytes_max`.
Status StageWorkspace(const run::Plan& plan, const std::string& report_dir, int64_t bytes_max,
                      const std::string& to);

}  // namespace openshell
