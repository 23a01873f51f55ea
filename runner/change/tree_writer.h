// SPDX-License-Identifier: Apache-2.0
// Puts a checked edit into a working tree. Internal to change/.
#pragma once

#include "base/result.h"
#include "change/tree_edit.h"

namespace change {

// Checks that nothing but `removed` is in the way of `written`, writes every new file to a
// temporary directory in `root` (a borrowed directory), then removes and moves into place. Fails
// with kInvalid, and nothing changed, if something is in the way; with kIo, whose `what` says
// whether the tree may be partly changed.
Status WriteTree(int root, const TreeEdit& edit);

}  // namespace change
