// SPDX-License-Identifier: Apache-2.0
// Makes a patch and its records from two states of the changed files. Internal to change/.
#pragma once

#include <string>

#include "base/result.h"
#include "change/capture.h"
#include "change/memory_repository.h"

namespace change {

// Fills files and patch of `changes`, adding to left_out what would take the patch over
// `patch_bytes_max`. Both states hold the changed paths only; their blobs are in `repository`.
Status RenderPatch(MemoryRepository& repository, const TreeEntries& before,
                   const TreeEntries& after, int64_t patch_bytes_max, ChangeSet& changes);

// Adds to left_out, within its bound. `lost` is true if the set is not complete without it.
void LeaveOut(ChangeSet& changes, const std::string& path, const std::string& reason, bool lost);

}  // namespace change
