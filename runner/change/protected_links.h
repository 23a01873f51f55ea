// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace change {

// A symbolic link at a protected path, such as `CLAUDE.md -> docs/guide.md`. What reads the
// protected path reads the target, so the target is protected like the path.
struct ProtectedLink {
  std::string path;  // The link, relative to the repository's top.
  // Its target, relative likewise: a file or directory, which need not exist, in the end or on the
  // way there.
  std::string target;
};

// Returns the links at protected paths of the tree at `top` (absolute, without links), sorted, one
// for each place that it leads to: those of `tracked`, paths relative to `top` that git knows as
// links; and untracked ones at its top, in the directories there, and in protected directories up
// to eight levels deep, where at most 20 000 entries are looked at. A tracked link in a directory
// that another one leads to has the name that is read. What leads outside the tree is left out.
// Nothing else may change the tree.
std::vector<ProtectedLink> FindProtectedLinks(const std::string& top,
                                              const std::vector<std::string>& tracked);

}  // namespace change
