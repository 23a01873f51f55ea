// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/plan.h"

namespace sandbox {

// Builds a ruleset in which each rule's path may be read and executed, or also written. Paths are
// opened now, so it must be built where they mean what the agent will see. A path that does not
// exist is passed over, or an error when `required`. An invalid Fd: this kernel has no Landlock,
// which is an error when `required`. `network` (base/privileges.h) is denied, as far as this kernel
// can.
Result<Fd> BuildLandlock(const std::vector<LandlockRule>& rules, bool required,
                         uint64_t network = 0);

}  // namespace sandbox
