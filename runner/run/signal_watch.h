// SPDX-License-Identifier: Apache-2.0
// Ends the process on signals and time limits even while its main thread is busy. Lives as long as
// the run.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/deadline.h"
#include "base/fd.h"
#include "run/recorder.h"
#include "run/signals.h"

namespace run {

// While this lives, SIGINT, SIGTERM, SIGHUP and too much time end the process, if need be without
// the main thread: in parts of a run it is busy with what others wrote (a repository, an image, a
// patch), and may not come to look at signals and limits. After a signal it has a few seconds to
// end in good order (PendingEnd); then the report is written from here and the process exits.
class SignalWatch {
 public:
  struct Bounds {
    std::chrono::nanoseconds processor_max{};  // The bound of OwnProcessorTime(); 0 if unlimited.
    Deadline until = Deadline::Never();        // Then the run ends as `late`, with what is known.
    EndCause late = sandbox::LimitName::kTimeout;
  };

  // `signals` is borrowed; `record` is what is known so far; the report goes to `directory`.
  // `remove`, if not null, is called before the process exits, since no destructor runs then.
  SignalWatch(const Signals& signals, Recorder record, std::string directory, Bounds bounds,
              std::function<void()> remove = nullptr);
  // Starts it, once. Fails if the user has no room for one more thread for some seconds.
  Status Start();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

 private:
  void Watch();
  bool Overspent() const;
  [[noreturn]] void EndLate();
  [[noreturn]] void EndProcess(EndCause kind);

  Recorder record_;
  std::string directory_;
  Bounds bounds_;
  std::function<void()> remove_;
  const Signals& signals_;
  std::thread thread_;
};

}  // namespace run
