// SPDX-License-Identifier: Apache-2.0
// A rename(2) in the sandbox waits until its directory is one that the kernel renames
// (directory_lift.h), and then goes on: it stays the kernel's call, with the caller's rights. A
// call that cannot be prepared goes on as well, and fails as it would have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/call/call_listener.h"

namespace sandbox {

// Returns SYS_rename and its kin, of which each call waits.
std::vector<int> RenameCalls();

// One of the paths of a call: where it begins, and the rest.
struct CalledPath {
  Fd base;
  std::string rest;
};

// The way of the process that moves directories to the place where they are, with the agent's
// rights.
struct MoverPlace {
  std::function<Status(pid_t)> attach;            // By the supervisor, once it is forked.
  std::function<Status(std::vector<Fd*>)> enter;  // By that process. It keeps these descriptors.
};

// The supervisor's side looks at paths, and follows no link of the agent's. Directories are moved
// by a process inside, which is started for the first of them and answers the calls itself: a large
// one holds up nothing else.
class RenameWatch {
 public:
  RenameWatch() = default;
  RenameWatch(RenameWatch&& other) noexcept;
  RenameWatch& operator=(RenameWatch&& other) noexcept;
  ~RenameWatch() { End(); }

  // Takes care of one of RenameCalls(), which `listener` has given.
  void Take(const CallListener& listener, const Call& call, const MoverPlace& place);
  // Lets calls go on that a killed process had to answer.
  void ReleaseAbandoned(const CallListener& listener);
  // Lets what is being moved be finished, and ends that process.
  void End();

 private:
  Status StartMover(const CallListener& listener, const MoverPlace& place);
  bool Prepare(const CallListener& listener, const Call& call, const MoverPlace& place);
  bool Send(const CallListener& listener, const Call& call, const MoverPlace& place,
            const CalledPath& path, bool last);

  pid_t mover_ = -1;
  Fd requests_;
  std::vector<uint64_t> sent_;  // Calls that it may have to answer yet.
};

}  // namespace sandbox
