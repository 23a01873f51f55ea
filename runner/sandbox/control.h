// SPDX-License-Identifier: Apache-2.0
// What the supervisor and the sandbox's first process say to each other, one message each over a
// SOCK_SEQPACKET pair. A closed socket means the other side is gone.
#pragma once

#include <cstddef>
#include <string_view>

namespace sandbox::control {

// Supervisor to init.
inline constexpr std::string_view kMapped = "mapped";  // Ids are mapped: build.
inline constexpr std::string_view kGo = "go";          // The gateway listens: start the agent.

// Init to supervisor.
// + a DoorKind for each door, and behind a space why not every connection is captured, or nothing.
inline constexpr std::string_view kNetwork = "network ";
inline constexpr std::string_view kDoor = "door";  // + its socket; one for each, in that order
// + a socket for the kernel's socket diagnostics (sock_diag(7)) in the sandbox's network namespace;
// without one where this kernel has none.
inline constexpr std::string_view kDiagnostics = "diagnostics";
// + another one, and + /proc/sysvipc/shm of the sandbox's IPC namespace, where there is one: what
// memory is measured with.
inline constexpr std::string_view kSockets = "sockets";
inline constexpr std::string_view kSegments = "segments";
inline constexpr std::string_view kUpper = "upper";  // + the workspace's upper directory
// From the agent's process, just before execve: + the watch over its connects, where there is one.
inline constexpr std::string_view kWatch = "watch";
inline constexpr std::string_view kStarted = "started";  // execve succeeded
inline constexpr std::string_view kEnded = "ended ";     // + the agent's wait status, decimal
inline constexpr std::string_view kFault = "fault ";     // + Code as a digit, then the text

inline constexpr size_t kBytesMax = 4096;

}  // namespace sandbox::control
