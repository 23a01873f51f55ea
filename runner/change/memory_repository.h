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

struct TreeEntry {
  git_oid id{};
  int mode = 0;  // 0100644, 0100755 or 0120000.
};

class MemoryRepository {
 public:
  // No path, no working tree, no attributes, an empty configuration and index.
  static Result<MemoryRepository> Create();

  // Copies `bytes`.
  Result<git_oid> AddBlob(std::string_view bytes);
  Result<std::string> ReadBlob(const git_oid& id) const;
  // `entries` by path; no path may be a directory of another. The ids must have been added.
  Result<GitTree> MakeTree(const std::map<std::string, TreeEntry>& entries);

  git_repository* get() const { return repository_.get(); }

 private:
  explicit MemoryRepository(GitRepository repository) : repository_(std::move(repository)) {}
  GitRepository repository_;
};

}  // namespace change
