// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sandbox/plan.h"

namespace run {

// What git needs in the sandbox apart from the checkout itself.
struct GitFiles {
  // Files of the repository that the agent sees instead of the host's: its configuration and that
  // of its submodules and worktrees, without the credentials that checkout steps leave there.
  std::vector<sandbox::WorkspaceFile> in_checkout;  // Relative to the checkout.
  std::vector<sandbox::WorkspaceFile> outside;      // Absolute paths in `directories`.
  // The parts of the repository that lie outside the checkout, to be shown read-only: where `.git`
  // is a file, as in a linked worktree, the directory it names and the one shared by all worktrees;
  // the object directories the repository borrows from.
  std::vector<std::string> directories;
};

// Reads no more than pointers and configuration. A `.git` file names a host directory that is then
// shown, so that has to be a git directory, and a worktree's has to point back at `checkout`
// (canonical); otherwise git does not work in the sandbox, and nothing is shown.
GitFiles FindGitFiles(const std::string& checkout);

}  // namespace run
