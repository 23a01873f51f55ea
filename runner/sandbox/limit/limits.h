// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sandbox {

// What one run may use; 0: as much as there is, but for the disk.
struct SandboxLimits {
  int64_t memory_bytes = 0;
  double cpus = 0;  // 0: all.
  int64_t pids = 0;
  int64_t disk_bytes = 0;
};

}  // namespace sandbox
