// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "base/fd.h"
#include "run/recorder.h"

namespace run {

// For the parts of a run in which the main thread is busy with what others wrote (a repository, an
// image, a patch) and may not come to look at signals: while this lives, SIGINT, SIGTERM and SIGHUP
// end the process, if need be without that thread. It has a few seconds to end in good order
// (PendingEnd); then the report is written from here and the process exits.
class SignalWatch {
 public:
  // `signals` is CatchSignals()'s, borrowed; `record` is what is known so far; the report goes to
  // `directory`.
  SignalWatch(int signals, Recorder record, std::string directory);
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

 private:
  void Watch(int signals);
  [[noreturn]] void EndProcess();

  Recorder record_;
  std::string directory_;
  Fd stop_;
  std::thread thread_;
};

}  // namespace run
