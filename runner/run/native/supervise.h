// SPDX-License-Identifier: Apache-2.0
// Supervises a running agent: output, limits, signals and the gateway, until the agent has ended.
#pragma once

#include "base/result.h"
#include "caller/connection_owners.h"
#include "codec/data/secret_mask.h"
#include "gateway/gateway.h"
#include "run/agent_end.h"
#include "run/agent_output.h"
#include "run/native/policy_reload.h"
#include "run/request.h"
#include "run/signals.h"
#include "sandbox/sandbox.h"

namespace run {

class Companion;

// The descriptors that a supervisor listens to, borrowed.
struct SupervisorSockets {
  int identity;  // The answering end of the gateway's questions.
  const Signals* signals;
};

// Stays with the started agent until it ends or a limit, a signal or a lost gateway ends it;
// answers the gateway's questions meanwhile, out of `owners`; SIGUSR1 has the policy read again.
// What the agent says is masked with `secrets`, to which tokens are added that the gateway fetches
// meanwhile. With a `companion` the limit of output is its own. On return nothing of the sandbox is
// alive. Fails only when waiting itself fails.
Result<AgentEnd> Supervise(sandbox::Sandbox& sandbox, gateway::Gateway& gateway,
                           caller::ConnectionOwners& owners, PolicyReload& reload,
                           SupervisorSockets sockets, const Request& request,
                           const OutputFiles& files, codec::SecretMask& secrets,
                           Companion* companion = nullptr);

}  // namespace run
