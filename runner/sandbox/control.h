// SPDX-License-Identifier: Apache-2.0
// Messages between the supervisor and the sandbox's first process (base/wire.h), over a
// SOCK_SEQPACKET pair, each with its kind first. A closed socket means the other side is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/sys.h"
#include "base/wire.h"
#include "sandbox/user_namespace.h"

namespace sandbox {

enum class ControlKind : uint8_t {
  // Supervisor to init.
  kMapped,  // Ids are mapped: build.
  // The gateway listens: start the agent. In tier namespaces with the program of the filter that
  // has every connect(2) watched (seccomp.h); empty if this kernel cannot: then one is built that
  // leaves them free.
  kStartAgent,

  // Init to supervisor.
  kNetwork,  // The kind of each GatewaySocket, and why not every connection is captured, or "".
  kGatewaySocket,  // With its socket; one for each, in that order.
  // Comes with a socket for the kernel's socket diagnostics (sock_diag(7)) in the sandbox's network
  // namespace; without one where this kernel has none.
  kDiagnostics,
  // Come with another one, and with /proc/sysvipc/shm of the sandbox's IPC namespace, if there is
  // one, to measure memory.
  kSockets,
  kSegments,
  kUpper,   // With the workspace's upper directory,
  kLayers,  // and with the directory of all writable layers.
  // Comes from the agent's process, just before execve: the watch over its connects, if any.
  kWatch,
  kStarted,  // execve succeeded.
  kEnded,    // The agent's wait status, and how many processes and threads there were then.
  kFault,    // An Error.
};

inline constexpr size_t kControlBytesMax = 20'000;  // An Error's two texts, and some more.

// The next message's values, and its descriptor if any. An Error where it is not of kind `wanted`:
// its own, where it is of kFault.
template <typename... T>
Result<Fd> Await(int control, ControlKind wanted, Deadline deadline, T&... values) {
  sys::Message message = TRY(sys::ReceiveMessage(control, kControlBytesMax, deadline));
  ControlKind kind{};
  if (wire::Read(message.bytes, kind, values...) && kind == wanted) return std::move(message.fd);
  Error error;
  if (wire::Read(message.bytes, kind, error) && kind == ControlKind::kFault) {
    return ExplainFault(std::move(error));
  }
  return Error{Code::kIo, "the sandbox's first process ended while starting"};
}

// Waits for the next message and reads its values. False unless it is of kind `wanted`.
template <typename... T>
bool Expect(int control, ControlKind wanted, T&... values) {
  Result<sys::Message> message = sys::ReceiveMessage(control, kControlBytesMax, Deadline::Never());
  ControlKind kind{};
  return message.ok() && wire::Read(message.value().bytes, kind, values...) && kind == wanted;
}

}  // namespace sandbox
