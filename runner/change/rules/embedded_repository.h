// SPDX-License-Identifier: Apache-2.0
// Directories that git takes for a repository without a `.git`: those with a HEAD, and beside it
// `objects` and `refs`, or a `commondir` (a working tree's part of a repository). Git that is
// started in one, or beneath it, runs what its configuration names (core.fsmonitor).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace change {

// The names in directories, each by its path from the repository's top ("": the top itself).
using DirectoryNames = std::map<std::string, std::vector<std::string>>;

// Returns the directories that may be repositories of which a file of `written` (paths from the
// top) is a part. FindEmbeddedRepositories() must know what was in them before.
std::vector<std::string> RepositoryCandidates(const std::vector<std::string>& written);

// Returns the names in each of the directories of the tree at `top` (absolute). A directory that
// does not exist, or is reached through a link, has none.
DirectoryNames ListDirectories(const std::string& top, const std::vector<std::string>& directories);

struct EmbeddedRepository {
  std::string directory;
  size_t file = 0;  // The first of `written` that makes or changes it.
};

// Returns those that a change makes, or whose own files it writes; not those that it leaves alone.
// Names are compared by codec::FoldFileName(), and what the files hold is not looked at.
std::vector<EmbeddedRepository> FindEmbeddedRepositories(const std::vector<std::string>& written,
                                                         const DirectoryNames& before);

}  // namespace change
