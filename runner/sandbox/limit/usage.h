// SPDX-License-Identifier: Apache-2.0
// The resources that a sandbox uses, measured from outside: nothing inside can hide from this or
// stop it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandbox {

// Opens the root directory of a sandbox's first process. Fails with kIo if that is dead; with
// kUnsupported for root in a container without the right to look into other users' processes.
Result<Fd> OpenRootOf(pid_t init);
// Opens the /proc of the sandbox whose first process is `init`: it lists every process in there.
Result<Fd> OpenProcesses(pid_t init);

struct ProcessUsage {
  int64_t own_bytes = 0;     // The bytes of each alone: memory, page tables, kernel stacks.
  int64_t shared_bytes = 0;  // Shared memory, as often as processes have it mapped.
  int64_t tasks = 0;         // Processes and threads.
  int64_t running = 0;       // Processes that run, or wait for a processor or a disk.
};
// Sums over the processes that `processes` lists (OpenProcesses), or over `members` of them.
ProcessUsage MeasureProcesses(int processes,
                              const std::optional<std::vector<pid_t>>& members = std::nullopt);
// Returns the processor time of the processes that live, and of those that they have waited for.
std::chrono::nanoseconds MeasureProcessorTime(
    int processes, const std::optional<std::vector<pid_t>>& members = std::nullopt);
// Returns the shared memory that they have mapped, each page once. Walks page tables, so it is
// asked for only where shared_bytes is too much.
int64_t MeasureSharedMemory(int processes,
                            const std::optional<std::vector<pid_t>>& members = std::nullopt);

// Measures System V shared memory that no process has attached. `segments` is /proc/sysvipc/shm,
// opened in the IPC namespace meant; or -1.
int64_t MeasureDetachedSegments(int segments);

// Measures the memory of a network namespace's sockets, with what waits in them.
class SocketMeter {
 public:
  SocketMeter() = default;
  // `netlink` is a NETLINK_SOCK_DIAG socket of that namespace; not valid: nothing is counted. With
  // `user`, only that user's sockets count, and of those that no program has (closed ones, and
  // connections that are not accepted yet) what they hold, if they cannot leave the machine: the
  // kernel does not say whose they are.
  explicit SocketMeter(Fd netlink, std::optional<uid_t> user = std::nullopt)
      : netlink_(std::move(netlink)), user_(user) {}

  // Returns bytes, without the user's sockets with the inodes `without`.
  int64_t Measure(const std::set<uint64_t>& without = {});

 private:
  // Unix, and TCP and UDP over each IP. For what a kernel does not know it looks for a module, each
  // time it is asked; so it is asked once.
  static constexpr int kLists = 5;

  Fd netlink_;
  std::optional<uid_t> user_;
  bool unknown_[kLists] = {};
};

// Returns how many files there may be on a file system of `disk_bytes`: one for each 4 KiB, and
// some thousand in any case. Each takes memory beside its content.
uint64_t InodesOf(int64_t disk_bytes);

struct DiskUsage {
  int64_t bytes = 0;        // The bytes of content.
  int64_t inode_bytes = 0;  // The bytes that the kernel keeps for the files themselves.
  bool full = false;        // True if no block or no inode is left, so something did not fit.
};
// Measures the file system that `directory` is on.
DiskUsage MeasureDisk(int directory);

}  // namespace sandbox
