// SPDX-License-Identifier: Apache-2.0
// A repository that exists only in memory: blobs and trees to make a diff from or to apply one to.
// Internal to change/.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "change/git_handle.h"

namespace change {

inline constexpr int kLinkMode = 0120000;

struct TreeEntry {
  git_oid id{};
  int mode = 0;  // 0100644, 0100755 or 0120000.
};

using TreeEntries = std::map<std::string, TreeEntry>;  // By path.

class MemoryRepository {
 public:
  // Creates one with no path, no working tree, no attributes, an empty configuration and index.
  static Result<MemoryRepository> Create();

  // Copies `bytes`.
  Result<git_oid> AddBlob(std::string_view bytes);
  Result<std::string> ReadBlob(const git_oid& id) const;
  // Makes a tree. No path may be a directory of another. The ids must have been added.
  Result<GitTree> MakeTree(const TreeEntries& entries);
  // Makes a commit of the tree that MakeTree() makes, without parents.
  Result<git_oid> MakeCommit(const TreeEntries& entries);

  git_repository* get() const { return repository_.get(); }

 private:
  explicit MemoryRepository(GitRepository repository) : repository_(std::move(repository)) {}
  GitRepository repository_;
};

}  // namespace change
