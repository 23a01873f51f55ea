// SPDX-License-Identifier: Apache-2.0
// Which files of git the sandbox shows besides the checkout, and the git configuration that the
// agent gets.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/shown/left_files.h"
#include "sandbox/plan.h"

namespace run {

// The files that git needs in the sandbox apart from the checkout itself.
struct GitFiles {
  // Files of the repository that the agent sees instead of the host's: its configuration and that
  // of its submodules and worktrees, without the credentials that checkout steps leave there.
  std::vector<sandbox::WorkspaceFile> in_checkout;  // Relative to the checkout.
  // Absolute paths in `layers` and `directories`; files of credentials there are empty.
  std::vector<sandbox::WorkspaceFile> outside;
  // The parts of the repository that lie outside the checkout. Git writes to them if `.git` is a
  // file, as in a linked worktree: the directory shared by all worktrees, first, and the one that
  // the file names, unless it is in the other.
  std::vector<std::string> layers;
  // The object directories the repository borrows from, to be shown read-only.
  std::vector<std::string> directories;
  // The configuration of further repositories in the checkout, relative to it.
  std::vector<sandbox::WorkspaceFile> nested;
  // The existing files that any of these configurations includes: relative to the checkout, and
  // elsewhere on the host.
  std::vector<std::string> included;
  std::vector<std::string> included_outside;
  std::string own;     // The checkout's git directory, with its HEAD; empty if there is none.
  std::string common;  // The directory of its branches: the same, except in a linked worktree.
};

// Reads no more than pointers and configuration. A `.git` file names a host directory that is then
// shown, so that has to be a git directory, and a worktree's has to point back at `checkout`
// (canonical); otherwise git does not work in the sandbox, and nothing is shown.
// `nested` are the git directories of further repositories in it (LeftFiles::repositories).
// Adds to `seen` what it has seen outside the checkout, by absolute paths. Fails as FindLeftFiles()
// does, about what lies there.
Result<GitFiles> FindGitFiles(const std::string& checkout,
                              const std::vector<std::string>& nested = {},
                              std::vector<Seen>* seen = nullptr);

// Renders the agent's own configuration of git, a ~/.gitconfig. A commit needs an identity, and
// most repositories on CI have none; `agent` is its name. And to the agent other ids and inodes are
// in the index than on the disk: without checkStat=minimal, `git diff-index` calls every file
// changed.
std::string RenderGitConfig(const std::string& agent);

}  // namespace run
