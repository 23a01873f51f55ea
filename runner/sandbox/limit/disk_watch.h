// SPDX-License-Identifier: Apache-2.0
// Measures the disk use of a run where no file system bounds it. Ask it in each turn of the
// supervisor; it spaces its walks.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/fd.h"
#include "sandbox/limit/usage.h"

namespace sandbox {

// Measures what a run has on a disk that does not bound it, by walking the run's directory. A walk
// takes as long as there are files, so the next is not begun before fifty times as long has passed,
// unless the disk fills meanwhile.
class DiskWatch {
 public:
  DiskWatch() = default;
  // `directory` is where the run writes. At most `bytes_max`, and InodesOf(bytes_max) files.
  DiskWatch(Fd directory, int64_t bytes_max);

  bool valid() const { return directory_.valid(); }
  // Measures the disk. `processes` is as OpenProcesses() gives it, or -1 once there are none: files
  // that were deleted and are still open count too. Once full, a disk is reported full for good.
  DiskUsage Measure(int processes);

 private:
  // The use of the whole disk, by this run or others.
  struct Taken {
    int64_t bytes = 0;
    int64_t files = 0;
  };
  Taken MeasureTaken() const;

  Fd directory_;
  int64_t bytes_max_ = 0;
  Taken first_;
  Taken walked_;  // When the last walk began.
  DiskUsage last_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace sandbox
