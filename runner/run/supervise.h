// SPDX-License-Identifier: Apache-2.0
// Supervises a running agent: output, limits, signals and the gateway, until the agent has ended.
// Called once by run/run.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/summary.h"
#include "base/fd.h"
#include "base/result.h"
#include "caller/connection_owners.h"
#include "codec/data/secret_mask.h"
#include "gateway/gateway.h"
#include "run/agent_output.h"
#include "run/policy_reload.h"
#include "run/request.h"
#include "sandbox/sandbox.h"

namespace run {

class Companion;

enum class EndKind {
  kExited,
  kLimit,        // `limit` says which.
  kInterrupted,  // SIGINT
  kTerminated,   // SIGTERM, SIGHUP
  kSandboxLost,  // The sandbox died before its agent, and we did not kill it.
  kGatewayLost,
  kCredentialRefused,  // AgentEnd::refused_by names the host.
  kModelUnresolved,    // AgentEnd::refused_by says why its name has no address.
};

// Why the agent is no longer running: one of these, or a limit that was reached.
struct EndCause {
  EndCause(EndKind why) : kind(why) {}  // NOLINT: a value of it.
  EndCause(sandbox::LimitName reached) : kind(EndKind::kLimit), limit(reached) {}  // NOLINT
  friend bool operator==(const EndCause&, const EndCause&) = default;

  EndKind kind;
  sandbox::LimitName limit = sandbox::LimitName::kTimeout;
};

// The state when the agent's process is gone and its output is drained.
struct AgentEnd {
  EndCause kind = EndKind::kExited;
  // The agent's exit status as a shell reports it: 0-255, 128+N for signal N.
  std::optional<int> status;
  agent::AgentSummary summary;
  int64_t output_bytes = 0;
  int64_t wall_ms = 0;
  std::vector<std::string> tail;  // The last lines of its log.
  bool output_lost = false;       // Some of its output could not be written down.
  // The model's host that refuses the credential again and again, or why its name has no address.
  std::string refused_by;
  // The processor time of the agent; nullopt if it was not counted.
  std::optional<std::chrono::nanoseconds> agent_cpu;
  // The processor time that the supervisor used while it watched the agent.
  int64_t supervisor_ms = 0;
  // The bound on OwnProcessorTime() while the changes are collected, so that --runner-cpu bounds
  // that too; at least a second more than at the agent's end.
  std::chrono::nanoseconds processor_max{};
};

struct Signals {
  Fd caught;  // A signalfd.
  Fd stop;    // An eventfd, for the one SignalWatch at a time.
};

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

// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1, which then arrive at `caught`; call it before the
// first process is started.
Result<Signals> CatchSignals();

// Returns the processor time of this process, with its threads.
std::chrono::nanoseconds OwnProcessorTime();

// Returns what a pending signal asks for: kInterrupted or kTerminated; nullopt if there is no such
// signal. Callable from any thread.
std::optional<EndCause> PendingEnd();

}  // namespace run
