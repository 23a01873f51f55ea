// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/sandbox.h"

namespace sandbox {

// Building takes milliseconds, or seconds on a machine that is emulated or has much to do. A build
// that takes longer than this is not going to finish.
inline constexpr std::chrono::milliseconds kBuildTimeout{120'000};

// Opens a namespace of a process that is not closed to its supervisor yet; `kind` is "user", "mnt",
// ...
Result<Fd> OpenNamespace(pid_t pid, const std::string& kind);

// Returns whether processors are to be pinned: they are limited, and there is no cpu controller.
bool Pins(const Cgroup& cgroup, const SandboxLimits& limits);
// Pins the process to `cpus` processors, rounded up.
void PinProcessors(pid_t pid, double cpus);

}  // namespace sandbox
