// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace image {

// The names in a directory, sorted, without "." and "..".
Result<std::vector<std::string>> DirectoryNames(int directory);

// rm -r: `name` in `parent`, itself never followed, however deep. kNotFound when it is not there.
Status RemoveTree(int parent, const std::string& name);

}  // namespace image
