// SPDX-License-Identifier: Apache-2.0
// The kernel stops every connect(2) in the sandbox until the supervisor has looked at who makes it
// (seccomp's user notification, seccomp_unotify(2)). The address is in memory that other threads of
// the caller can write: it may be a reason to refuse the call, and never one to trust it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "policy/model/destination.h"

namespace sandbox {

// One connect(2) that waits.
struct Connect {
  uint64_t id = 0;   // The kernel's, for the calls below.
  pid_t thread = 0;  // The calling thread, as the reader numbers it.
  int socket = -1;   // A descriptor of that thread.
  // The address, in that thread's memory.
  uint64_t address = 0;
  uint32_t address_size = 0;
};

// Where a call would connect to.
struct Target {
  policy::Address address;
  uint16_t port = 0;
};

// The supervisor's end. Once it is closed, calls that wait and all later ones fail with ENOSYS: a
// sandbox that is not watched any more does not hang, and does not connect.
class ConnectWatch {
 public:
  ConnectWatch() = default;  // Watches nothing: descriptor() is -1.
  explicit ConnectWatch(Fd listener) : listener_(std::move(listener)) {}

  // Readable when a call waits, or when nobody is left who could make one.
  int descriptor() const { return listener_.get(); }

  // The next call. `events` is what poll(2) said of the descriptor. Nothing when the caller died
  // meanwhile. Closes the descriptor when nobody is left.
  std::optional<Connect> Take(short events);
  // Lets the call go on. False when the caller does not wait any more: then what was read of its
  // thread may be another's with the same number.
  bool Continue(const Connect& connect) const;

  // Where the call leads, if it is of TCP and the gateway would capture it (nf_tables.h): not to
  // loopback or the proxy. What was read of its thread before this is that thread's then. nullopt
  // also in every doubt.
  std::optional<Target> ReadCapturedTarget(const Connect& connect) const;
  // Fails the call with ECONNREFUSED, if its caller still waits.
  void Refuse(const Connect& connect) const;

 private:
  Fd listener_;
};

}  // namespace sandbox
