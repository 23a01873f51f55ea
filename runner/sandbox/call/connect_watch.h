// SPDX-License-Identifier: Apache-2.0
// The kernel stops every connect(2) in the sandbox until the supervisor has looked at who makes it,
// and, if the sandbox has its own tree, every rename(2) (rename_watch.h).
// If the sandbox has its own network, the address may be a reason to refuse the call but is never
// trusted: the call continues with whatever is in the caller's memory by then. If it has none, the
// call never continues: a broker carries it out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "sandbox/call/call_listener.h"
#include "sandbox/call/rename_watch.h"
#include "sandbox/call/socket_address.h"

namespace sandbox {

class Broker;

// One connect(2) that waits.
struct Connect {
  uint64_t id = 0;   // The kernel's, for the calls below.
  pid_t thread = 0;  // The calling thread, as the reader numbers it.
  int socket = -1;   // A descriptor of that thread.
  // The address, in that thread's memory.
  uint64_t address = 0;
  uint32_t address_size = 0;
  // Set by a broker: the socket that will be connected, and where the caller wants it to lead.
  // Later contents of its memory do not matter.
  uint64_t inode = 0;
  Target target = {};
};

// The supervisor's end. Once it is closed, calls that wait and all later ones fail with ENOSYS: a
// sandbox that is not watched any more does not hang, and does not connect.
class ConnectWatch {
 public:
  ConnectWatch();  // Watches nothing: descriptor() is -1.
  explicit ConnectWatch(Fd listener);
  // Takes the listener at which the calls wait that `broker` carries out.
  ConnectWatch(Fd listener, std::unique_ptr<Broker> broker);
  ConnectWatch(ConnectWatch&&) noexcept;
  ConnectWatch& operator=(ConnectWatch&&) noexcept;
  ~ConnectWatch();

  // Returns a descriptor that is readable when a call waits, or when no process is left that could
  // make one.
  int descriptor() const { return listener_.descriptor(); }
  bool brokered() const { return broker_ != nullptr; }

  // Returns the next call. `events` is what poll(2) said of the descriptor. Returns nullopt if the
  // caller died meanwhile, or if the broker or, with a process in `place`, the watch over renames
  // has dealt with it. Closes the descriptor when no process is left.
  std::optional<Connect> Take(short events, const MoverPlace& place);
  // Lets renames go on that waited for a process that was killed, by a limit of memory for one.
  void ReleaseRenames() { renames_.ReleaseAbandoned(listener_); }
  // Ends them, once nothing of the agent is left.
  void EndRenames() { renames_.End(); }
  // Lets the call go on, or carries it out. Returns false if the caller does not wait any more:
  // then what was read of its thread may be another's with the same number.
  bool Continue(const Connect& connect);

  // Returns the call's destination if the call is of TCP and the gateway would capture it
  // (nf_tables.h): not to loopback or the proxy. If it succeeds, what was read of its thread before
  // this was that thread's. Returns nullopt in every doubt, too.
  std::optional<Target> ReadCapturedTarget(const Connect& connect) const;
  // Fails the call with ECONNREFUSED, if its caller still waits.
  void Refuse(const Connect& connect) const;

 private:
  CallListener listener_;
  std::unique_ptr<Broker> broker_;
  RenameWatch renames_;
};

}  // namespace sandbox
