// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "change/capture.h"
#include "change/repository.h"

namespace change {

// Applies the patch of `changes` to the working tree at `checkout`; the index and `.git` stay as
// they are. `repository` is that checkout's, whose attributes say how files are converted; if it is
// null, they are not. Only `changes.patch` decides what is written, so what is applied is what was
// judged.
//
// Everything is checked first: each old file must be there, or be left out by a sparse checkout,
// with exactly the blob and the mode the patch starts from, nothing may be in the way of a new one,
// no path may leave the checkout, pass through a symbolic link or enter a `.git`, and no new link
// may point outside. The new files are then written to a temporary directory in the checkout, and
// only after that moved into place; so an Error of kInvalid (does not apply), kRefused (may not be
// applied, or is not complete), or of a full disk leaves the tree as it was. Directories that
// become empty are removed, as git does.
Status ApplyPatch(const std::string& checkout, const Repository* repository,
                  const ChangeSet& changes);

// Adds to `meanwhile` what ApplyPatch() has just written of the agent's tree: the files and the
// directories above them.
void NoteWritten(const std::string& checkout, int tree, const ChangeSet& changes,
                 Meanwhile* meanwhile);

}  // namespace change
