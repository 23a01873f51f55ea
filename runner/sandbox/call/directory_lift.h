// SPDX-License-Identifier: Apache-2.0
// Directories of an overlay that the kernel renames.
//
// An overlay that a user mounted does not rename a directory that its lower layer has a part in
// (EXDEV): the mark that such a rename needs could name any directory of the lower layer, so the
// kernel takes it from root's overlays alone. A directory that is in the upper layer only is
// renamed as anywhere else.
#pragma once

#include <string>

#include "base/result.h"

namespace sandbox {

// Makes the directory at `path`, relative to `base`, one of the upper layer only. A new directory
// takes its place, into which all that was in it is moved; names, contents, modes and times stay. A
// directory of another file system and a file are left as they are. After an error too, everything
// is where it was.
Status LiftDirectory(int base, const std::string& path);

}  // namespace sandbox
