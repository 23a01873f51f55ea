// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sys {

// No tool makes trees half as deep. Walks that take a descriptor for each level end there.
inline constexpr int kTreeDepthMax = 256;

// The names in a directory, sorted, without "." and "..".
Result<std::vector<std::string>> DirectoryNames(int directory);

// rm -r: `name` in `parent`, itself never followed, however deep; directories that their owner may
// not change are made changeable. Nothing else may be at work in it. kNotFound when it is not
// there.
Status RemoveTree(int parent, const std::string& name);

}  // namespace sys
