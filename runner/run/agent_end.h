// SPDX-License-Identifier: Apache-2.0
// How the agent of a run ended, wherever it ran.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/summary.h"
#include "sandbox/limit/limit.h"

namespace run {

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
  // When each line of agent.jsonl came, in milliseconds since 1970; with Request::times_lines, and
  // at most AgentOutput::kTimedLinesMax.
  std::vector<int64_t> line_times_ms;
  bool output_lost = false;  // Some of its output could not be written down.
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

}  // namespace run
