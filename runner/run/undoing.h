// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/deadline.h"
#include "base/result.h"
#include "base/thread.h"
#include "sandbox/sandbox.h"

namespace run {

// Destroys a sandbox that has ended beside what the caller does meanwhile: its mounts, its cgroups
// and its files take about as long as writing the report. No process may be started before this is
// destroyed, which waits until the sandbox is gone.
class Undoing {
 public:
  // Takes the sandbox, if there is one.
  explicit Undoing(std::optional<sandbox::Sandbox> sandbox) : sandbox_(std::move(sandbox)) {
    if (!sandbox_) return;
    Result<std::thread> thread =
        sys::StartThread([this] { sandbox_.reset(); }, Deadline::After(std::chrono::seconds(0)));
    if (thread.ok()) thread_ = std::move(thread).value();
  }
  Undoing(const Undoing&) = delete;
  Undoing& operator=(const Undoing&) = delete;
  ~Undoing() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::optional<sandbox::Sandbox> sandbox_;  // Destroyed with this object if there is no thread.
  std::thread thread_;
};

}  // namespace run
