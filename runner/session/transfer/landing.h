// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace session {

// The place where a copy is to stand: `leaf` in an open directory.
struct Landing {
  Fd parent;
  std::string leaf;
};

// Decides as `cp -r` does: `path` is where the copy of something called `name` will stand, or, if
// there is a directory at `path` or it ends in '/', that directory is where it goes. Directories
// that are missing above it are made. `path` is absolute and looked up with `root` as the root
// directory; its links are followed in there. Errors call it `shown`.
Result<Landing> FindLanding(int root, const std::string& path, const std::string& name,
                            const std::string& shown);

// Opens the file or directory at `path` for reading; the named path itself may be a link. Fails
// with kInvalid if something else stands there. Errors call it `shown`.
Result<Fd> OpenSource(int root, const std::string& path, const std::string& shown);

}  // namespace session
