// SPDX-License-Identifier: Apache-2.0
// Puts a checked edit into a working tree. Internal to change/.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>

#include "base/result.h"
#include "change/tree_edit.h"

namespace change {

// The old files that an edit was planned on, by path, with what they were when they were read.
using PlannedOn = std::map<std::string, struct stat>;

// Checks that nothing but `removed` is in the way of `written`, writes every new file to a
// temporary directory in `root` (a borrowed directory), then removes and moves into place. Fails
// with kInvalid, and nothing changed, if something is in the way or an old file is not what it was;
// with kIo, whose `what` says whether the tree may be partly changed. A file that another program
// saves meanwhile stays in place: the edit then fails at that file.
Status WriteTree(int root, const TreeEdit& edit, const PlannedOn& planned_on);

}  // namespace change
