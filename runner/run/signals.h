// SPDX-License-Identifier: Apache-2.0
// The signals that end a run, and the processor time of this process.
#pragma once

#include <chrono>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "run/agent_end.h"

namespace run {

struct Signals {
  Fd caught;  // A signalfd.
  Fd stop;    // An eventfd, for the one SignalWatch at a time.
};

// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1, which then arrive at `caught`; call it before the
// first process is started.
Result<Signals> CatchSignals();

// Returns the processor time of this process, with its threads.
std::chrono::nanoseconds OwnProcessorTime();

// Returns what a pending signal asks for: kInterrupted or kTerminated; nullopt if there is no such
// signal. Callable from any thread.
std::optional<EndCause> PendingEnd();

}  // namespace run
