// SPDX-License-Identifier: Apache-2.0
// System calls that the kernel stops until the owner of a filter's listener has answered them
// (seccomp's user notification, seccomp_unotify(2)).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace sandbox {

// One call that waits. Numbers among the arguments are the caller's for good; what they point at is
// memory that other threads of the caller can write.
struct Call {
  uint64_t id = 0;
  pid_t thread = 0;  // The calling thread, as the reader numbers it.
  int number = 0;    // SYS_...
  std::array<uint64_t, 6> arguments{};

  int Number(size_t argument) const { return static_cast<int>(arguments[argument]); }
};

// The supervisor's end. Once it is closed, calls that wait and all later ones fail with ENOSYS: a
// sandbox that is not watched any more does not hang, and does not connect.
class CallListener {
 public:
  CallListener() = default;  // Hears nothing: descriptor() is -1.
  explicit CallListener(Fd listener);

  // Returns a descriptor that is readable when a call waits, or when nothing is left that could
  // make one.
  int descriptor() const { return listener_.get(); }

  // Returns the next call. `events` is what poll(2) said of the descriptor. Returns nullopt if the
  // caller died meanwhile. Closes the descriptor when nothing is left.
  std::optional<Call> Take(short events);

  // Returns whether the caller still waits: if it does, what was read of its thread before this is
  // that thread's.
  bool Waits(uint64_t id) const;
  // Lets the kernel carry the call out, with whatever its pointers point at by then. These two are
  // false when the caller does not wait any more.
  bool Continue(uint64_t id) const;
  // Ends the call with `value`, or with the error -`value`.
  bool Answer(uint64_t id, int64_t value) const;

  // Ends the call with a new descriptor of the caller's that is a copy of `fd`; a failure, such as
  // too many descriptors, ends it with that.
  bool AnswerWithCopy(uint64_t id, int fd, bool close_on_exec) const;
  // Makes the caller's descriptor `theirs` a copy of `fd`, in place of what it was.
  bool Replace(uint64_t id, int theirs, int fd, bool close_on_exec) const;

 private:
  Fd listener_;
};

}  // namespace sandbox
