// SPDX-License-Identifier: Apache-2.0
// Puts a checked edit into a working tree. Internal to change/.
#pragma once

#include <map>
#include <set>
#include <string>

#include "base/result.h"

namespace change {

struct TreeEdit {
  struct NewFile {
    std::string bytes;  // Of a symbolic link: its target.
    int mode = 0;       // 0100644, 0100755 or 0120000.
  };
  std::set<std::string> removed;           // Files that are there now; some are written again.
  std::map<std::string, NewFile> written;  // All valid paths (protected_path.h).
};

// Checks that nothing but `removed` is in the way of `written`, writes every new file to a
// temporary directory in `root` (a borrowed directory), then removes and moves into place.
// kInvalid: something is in the way, nothing was changed. kIo: `what` says whether the tree may be
// partly changed.
Status WriteTree(int root, const TreeEdit& edit);

}  // namespace change
