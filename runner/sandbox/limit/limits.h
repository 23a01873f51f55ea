// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sandbox {

// The limits of one run; 0 is as much as there is, but for the disk.
struct SandboxLimits {
  int64_t memory_bytes = 0;
  double cpus = 0;  // 0 for all.
  int64_t pids = 0;
  int64_t disk_bytes = 0;
  int64_t cpu_s = 0;       // Seconds of processor time, all processes together.
  int64_t open_files = 0;  // The open files of each process.
  int64_t file_bytes = 0;  // The bytes of each file.
  // The sandbox outlasts what runs in it: in memory its files leave room for processes, and a disk
  // that is full there is for its programs to see.
  bool lasting = false;
};

}  // namespace sandbox
