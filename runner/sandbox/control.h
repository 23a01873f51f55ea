// SPDX-License-Identifier: Apache-2.0
// What the supervisor and the sandbox's first process say to each other: messages of base/wire.h
// over a SOCK_SEQPACKET pair, each with its kind first. A closed socket means the other side is
// gone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandbox {

enum class ControlKind : uint8_t {
  // Supervisor to init.
  kMapped,  // Ids are mapped: build.
  kGo,      // The gateway listens: start the agent.

  // Init to supervisor.
  kNetwork,  // The kind of each Door, and why not every connection is captured, or "".
  kDoor,     // With its socket; one for each, in that order.
  // With a socket for the kernel's socket diagnostics (sock_diag(7)) in the sandbox's network
  // namespace; without one where this kernel has none.
  kDiagnostics,
  // With another one, and with /proc/sysvipc/shm of the sandbox's IPC namespace, where there is
  // one: what memory is measured with.
  kSockets,
  kSegments,
  kUpper,    // With the workspace's upper directory.
  kWatch,    // From the agent's process, just before execve: the watch over its connects, if any.
  kStarted,  // execve succeeded.
  kEnded,    // The agent's wait status.
  kFault,    // An Error.
};

inline constexpr size_t kControlBytesMax = 20'000;  // An Error's two texts, and some more.

}  // namespace sandbox
