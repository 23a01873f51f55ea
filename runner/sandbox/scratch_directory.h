// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/usage.h"

namespace sandbox {

// A directory on a disk of the host, one run's own: for the writable layers where memory file
// systems have no user attributes (Linux before 6.6), and for a copy of a checkout that cannot be a
// layer itself. Only its owner can enter it. Destroying it removes it.
class ScratchDirectory {
 public:
  enum class Use {
    kLayers,  // Overlayfs writes there: it needs user attributes and whiteouts.
    kFiles,
  };

  // Makes one in the first of `places` (absolute paths) whose file system serves `use`, found by
  // trying. Removes what killed runs of this user have left in the places it looks at.
  // kUnsupported, with the reason for each place, when none will do.
  static Result<ScratchDirectory> Make(const std::vector<std::string>& places, Use use);

  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  // Absolute, without links.
  std::string path() const { return place_ + "/" + name_; }
  int fd() const { return fd_.get(); }

 private:
  ScratchDirectory() = default;

  std::string place_;
  std::string name_;  // Empty: moved from.
  Fd parent_;
  Fd fd_;  // Holds the lock that says the directory is in use.
};

// What is beneath a directory of a ScratchDirectory, found by walking it. A walk takes as long as
// there are files, so the next is not begun before fifty times as long has passed, unless the disk
// fills meanwhile.
class DiskWatch {
 public:
  DiskWatch() = default;
  // `directory`: where the run writes. At most `bytes_max`, and InodesOf(bytes_max) files.
  DiskWatch(Fd directory, int64_t bytes_max);

  bool valid() const { return directory_.valid(); }
  // `processes` as OpenProcesses() gives it, or -1 once there are none: files that were deleted and
  // are still open count too. What was full once stays so.
  DiskUsage Measure(int processes);

 private:
  // Of the whole disk, by this run or others.
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
