// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox/filter/rules.h"
#include "sandbox/filter/seccomp.h"

namespace sandbox {

// Adds what the filter has where no namespace holds the agent: calls that reach what else runs on
// the host are denied, or told to the broker, which carries them out.
void AddSharedHostRules(Rules& rules, const SharedHost& shared);

}  // namespace sandbox
