// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace change {

struct IndexPaths {
  std::set<std::string> paths;
  // The name in 40 hexadecimal digits of the file that has more of them (`sharedindex.NAME`), if
  // this is a part of a split index.
  std::string shared;
};

// Reads the paths in git's index file `bytes` (gitformat-index(5), versions 2 to 4, SHA-1). A
// sparse one has directories, with a `/` at the end. The agent may have forged it: where it is not
// as it should be, reading ends.
IndexPaths ReadIndexPaths(std::string_view bytes);

}  // namespace change
