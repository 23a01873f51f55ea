// SPDX-License-Identifier: Apache-2.0
// Threads without exceptions: starts one, or runs a function in the background until its result is
// needed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <thread>

#include "base/deadline.h"
#include "base/result.h"

namespace sys {

// std::thread throws where no thread can be made. The usual reason is a process limit that other
// processes of the user take up for a moment (EAGAIN, pthread_create(3)): it is tried again until
// `deadline`.
Result<std::thread> StartThread(const std::function<void()>& body, Deadline deadline);

// Moves a process that the caller has just forked to another processor than the caller's. Linux
// often leaves a child on its parent's processor although another is idle, so that it runs only
// once the parent waits. The child's affinity is the same afterwards; nothing else may set it
// meanwhile.
void MoveAside(pid_t started);

// Runs a function in a thread of its own, on another processor, while the caller goes on. If no
// thread can be started, the constructor runs the function itself.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  explicit BackgroundTask(const std::function<void()>& body);
  BackgroundTask(BackgroundTask&&) = default;
  BackgroundTask& operator=(BackgroundTask&& other) noexcept;
  ~BackgroundTask() { Wait(); }

  // Returns when the function has returned.
  void Wait();

 private:
  std::thread thread_;
};

}  // namespace sys
