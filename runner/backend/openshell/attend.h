// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/openshell/proposals.h"
#include "backend/openshell/sandbox.h"
#include "base/child.h"
#include "base/result.h"
#include "codec/data/secret_mask.h"
#include "run/agent_output.h"
#include "run/request.h"
#include "run/signals.h"

namespace openshell {

// Stays with the agent that `command` (of Sandbox::Exec) runs until it ends, or a limit of time,
// output or the records of `sandbox`, a signal (a signalfd) or the end of this run's own gateway (a
// pidfd, or -1) ends the wait: what runs in the sandbox then still runs. A status other than 0 may
// also mean that the gateway was lost: ask it. Proposals are reported meanwhile to `proposals`
// (borrowed), or not looked for if it is null.
Result<run::AgentEnd> Attend(Child command, int signals, int gateway_ended, const Sandbox& sandbox,
                             const run::Request& request, const run::OutputFiles& files,
                             const codec::SecretMask& secrets, ProposalWatch* proposals);

}  // namespace openshell
