// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace sys {

// More than twice as deep as any tool makes trees. Walks that hold a descriptor per level stop
// here.
inline constexpr int kTreeDepthMax = 256;

// Returns the names in a directory, sorted, without "." and "..". Fails with kInvalid if they take
// more memory than `bytes_max`.
Result<std::vector<std::string>> DirectoryNames(int directory, size_t bytes_max = SIZE_MAX);

// Changes the mode of the directory `name` in `parent`: of the one that is looked at, never of what
// a link by that name leads to, though others exchange the two meanwhile.
Status ChangeDirectoryMode(int parent, const std::string& name, mode_t mode);

// Removes, as `rm -r` does, `path` in or below `parent`, itself never followed, however deep;
// directories that their owner may not change are made changeable. Nothing else may be changing it
// meanwhile. Fails with kNotFound if it is not there; no link on the way to it is followed.
Status RemoveTree(int parent, const std::string& path);

}  // namespace sys
