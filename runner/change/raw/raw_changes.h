// SPDX-License-Identifier: Apache-2.0
// Lists what the agent left in its tree, name by name and byte by byte: an evaluation judges by it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "change/capture.h"

namespace change {

struct RawChange {
  std::string path;                         // Relative to the checkout; any byte but NUL.
  ChangeKind kind = ChangeKind::kModified;  // kCreated, kModified or kDeleted.
  // The bytes afterwards, or the target of a link; nothing if the path is deleted, is not a file,
  // cannot be read or exceeds a limit.
  std::optional<std::string> content;
};

struct RawLimits {
  int64_t changes_max = 200'000;
  int64_t file_bytes_max = 16 << 20;
  int64_t content_bytes_max = 32 << 20;  // The contents of all files.
  int64_t entries_max = 2'000'000;       // Directory entries looked at.
};

// Calls `take` for each path that the agent created, changed or deleted. Unlike CaptureChanges(),
// which decides what belongs into a patch, it follows no rule that the agent could write: ignored
// files, repositories in the tree and `.git` itself are listed, bytes are not converted, and pipes,
// sockets and devices are named. `tree.taken_out` is a file like any other. Returns whether that
// is all: false if something was not looked at.
Result<bool> ListRawChanges(const ChangedTree& tree, const std::string& checkout,
                            const RawLimits& limits,
                            const std::function<Status(const RawChange&)>& take);

}  // namespace change
