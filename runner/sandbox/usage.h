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
  int64_t own_bytes = 0;     // Of each alone: memory, page tables, kernel stacks.
  int64_t shared_bytes = 0;  // Shared memory, as often as processes have it mapped.
  int64_t tasks = 0;         // Processes and threads.
};
// Sums over the processes that `processes` lists (OpenProcesses).
ProcessUsage MeasureProcesses(int processes);
// The shared memory that they have mapped, each page once. Walks page tables, so it is asked for
// only where shared_bytes is too much.
int64_t MeasureSharedMemory(int processes);

// System V shared memory that no process has attached. `segments` is /proc/sysvipc/shm, opened in
// the IPC namespace meant; or -1.
int64_t MeasureDetachedSegments(int segments);

// What sockets take, with what waits in them. `netlink` is a NETLINK_SOCK_DIAG socket of the
// network namespace meant, which nobody else uses meanwhile; or -1.
int64_t MeasureSockets(int netlink);

// How many files there may be on a file system of so many bytes: one for each 4 KiB, and some
// thousand in any case. Each takes memory beside its content.
uint64_t InodesOf(int64_t disk_bytes);

struct DiskUsage {
  int64_t bytes = 0;        // Of content.
  int64_t inode_bytes = 0;  // What the kernel keeps of the files themselves.
  bool full = false;        // No block or no inode is left, so something did not fit.
};
// Of the file system that `directory` is on.
DiskUsage MeasureDisk(int directory);

}  // namespace sandbox
