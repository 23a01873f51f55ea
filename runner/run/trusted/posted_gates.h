// SPDX-License-Identifier: Apache-2.0
// The gates for a report that is posted, which may be forged: what it says of its task says
// nothing.
#pragma once

#include <string_view>

#include "base/result.h"
#include "change/gate.h"
#include "run/trusted/config.h"

namespace run {

// Returns the gates of the configuration and of `task`, the name of one of its tasks. If it is
// empty, the task is not known, and the report must pass each one's: the refusals of all tasks and
// the smallest of all limits. Fails with kRefused for a name that the configuration does not have.
Result<change::GateLimits> PostedGates(const Config& config, std::string_view task);

}  // namespace run
