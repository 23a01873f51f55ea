// SPDX-License-Identifier: Apache-2.0
// Copies a tree of files for tier landlock and for checkouts that cannot be a layer, within
// limits.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"

namespace sandbox {

struct CopyLimits {
  int64_t bytes_max = 0;
  int64_t files_max = 0;  // Directories and links too.
  int leaves_out = -1;    // A directory that is not copied, open; borrowed.
};

// The owner that the copies shall have; needs root.
struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct CopySum {
  int64_t bytes = 0;
  int64_t files = 0;
  int64_t left_out = 0;  // Sockets, pipes, devices, and what this user may not read.
};

// The report of how far a copy is: made at most every `every`, and not for a copy that takes less.
struct CopyProgress {
  std::chrono::milliseconds every{3000};
  std::function<void(const CopySum&)> tell;
};
// Lines in the log.
CopyProgress LogCopying();

// Copies what is beneath the directory `from` into the empty directory `to`: contents, permission
// bits, modification times and symbolic links, never followed. Blocks are shared where the file
// system can (FICLONE); inodes never are, so that nothing written to the copy reaches `from`.
// Mounts beneath `from` are left out: a directory there is an empty one in the copy. Fails with
// kUnsupported if a limit is passed.
Result<CopySum> CopyTree(int from, int to, const CopyLimits& limits, std::optional<Owner> owner,
                         const CopyProgress& progress);

}  // namespace sandbox
