// SPDX-License-Identifier: Apache-2.0
// What a sandbox uses, measured from outside of it: nothing inside can hide from this or stop it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// The /proc of the sandbox whose first process is `init`: it lists every process in there.
Result<Fd> OpenProcesses(pid_t init);

struct ProcessUsage {
  int64_t memory_bytes = 0;
  int64_t tasks = 0;  // Processes and threads.
};
// Sums over the processes that `processes` lists (OpenProcesses).
ProcessUsage MeasureProcesses(int processes);

struct DiskUsage {
  int64_t bytes = 0;
  bool full = false;  // No block or no inode is left, so something did not fit.
};
// Of the file system that `directory` is on.
DiskUsage MeasureDisk(int directory);

}  // namespace sandbox
