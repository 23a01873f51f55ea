// SPDX-License-Identifier: Apache-2.0
// Requires that what the variables of a job say was signed by the forge.
#pragma once

#include "forge/event.h"
#include "run/trusted/trust.h"

namespace run {

// Returns `trust`, unless it is of a merge request on a forge that signs events (StarterProof), and
// this one is not signed: who may push
// its source branch, and so change the job, can set the variables that distinguish it from a
// fork's.
Trust RequireSignature(const forge::Event& event, bool is_signed, const Trust& trust);

}  // namespace run
