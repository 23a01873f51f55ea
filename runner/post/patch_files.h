// SPDX-License-Identifier: Apache-2.0
// A patch against the files of a commit that only the forge has.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "change/gate.h"
#include "forge/branches.h"

namespace post {

inline constexpr int kLinkMode = 0120000;  // The mode of a symbolic link in git.

// Reads directories and files of one commit, each at most once.
class CommitTree {
 public:
  CommitTree(forge::Branches& branches, std::string tree, Deadline deadline);

  // Returns an entry of mode 0 if there is nothing at `path`.
  Result<forge::TreeEntry> Find(const std::string& path);
  Result<std::string> ReadBlob(const std::string& id);
  // Returns the links at protected paths in the top directory: change::GateLimits::links.
  Result<std::vector<change::ProtectedLink>> ProtectedLinks();
  // Returns change::GateLimits::before of these directories.
  Result<change::DirectoryNames> Names(const std::vector<std::string>& directories);

 private:
  Result<const forge::Directory*> Open(const std::string& path);

  forge::Branches& branches_;
  Deadline deadline_;
  std::map<std::string, std::string> ids_;  // Path of a directory to its tree.
  std::map<std::string, forge::Directory> directories_;
};

// Plans the files that `patch` makes of the commit, `prefix` being the directory that its paths
// start from ("" or "directory/"). Fails with kInvalid if it does not apply to the commit, with
// kRefused if it may not, or cannot.
Result<std::vector<forge::FileWrite>> PlanFiles(const std::string& patch, const std::string& prefix,
                                                CommitTree& tree);

}  // namespace post
