// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/sandbox.h"

namespace sandbox {

// Building takes milliseconds, or seconds on a machine that is emulated or has much to do. What
// takes longer than this is not going to finish.
inline constexpr std::chrono::milliseconds kBuildTimeout{120'000};

// Of a process that is not closed to its supervisor yet: "user", "mnt", ...
Result<Fd> OpenNamespace(pid_t pid, const std::string& kind);

// Whether processors are pinned, for want of a cpu controller,
bool Pins(const Cgroup& cgroup, const SandboxLimits& limits);
// to as many as asked for, rounded up.
void PinProcessors(pid_t pid, double cpus);

}  // namespace sandbox
