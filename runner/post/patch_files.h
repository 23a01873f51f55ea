// SPDX-License-Identifier: Apache-2.0
// A patch against the files of a commit that only the forge has.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "change/gate.h"
#include "forge/branches.h"

namespace post {

inline constexpr int kLinkMode = 0120000;  // The mode of a symbolic link in git.

// The files of one commit. The forge lists them once.
class CommitTree {
 public:
  static Result<CommitTree> Read(forge::Branches& branches, const std::string& tree,
                                 Deadline deadline);

  // Returns an entry of mode 0 if there is nothing at `path`.
  forge::TreeEntry Find(const std::string& path) const;
  Result<std::string> ReadBlob(const std::string& id) const;
  // Returns what the links at protected paths lead to, each link on the way included:
  // change::GateLimits::links. What leads outside of the tree is left out. Fails with kInvalid
  // beyond 1000 links, or 100 different texts of links.
  Result<std::vector<change::ProtectedLink>> ProtectedLinks() const;
  // Returns whether each path that this tree changes of `before` is the same in `head`, or one of
  // `written`.
  bool KeepsChanges(const CommitTree& before, const CommitTree& head,
                    const std::set<std::string>& written) const;
  // Returns change::GateLimits::before of these directories.
  change::DirectoryNames Names(const std::vector<std::string>& directories) const;

 private:
  using Targets = std::map<std::string, std::string>;  // The text of a link by its blob.

  CommitTree(forge::Branches& branches, forge::Tree entries, Deadline deadline)
      : branches_(branches), entries_(std::move(entries)), deadline_(deadline) {}
  Result<std::string> ReadTarget(const std::string& id, Targets& targets) const;

  forge::Branches& branches_;
  forge::Tree entries_;
  Deadline deadline_;
};

// Plans the files that `patch` makes of the commit, `prefix` being the directory that its paths
// start from ("" or "directory/"). Fails with kInvalid if it does not apply to the commit, with
// kRefused if it may not, or cannot.
Result<std::vector<forge::FileWrite>> PlanFiles(const std::string& patch, const std::string& prefix,
                                                const CommitTree& tree);

// Returns the paths of `files` that are then what they are in `tree`. Fails as change::BlobId().
Result<std::set<std::string>> EqualPaths(const std::vector<forge::FileWrite>& files,
                                         const CommitTree& tree);

// A plan of PlanFiles(), moved from its commit to another one.
struct MergedFiles {
  std::vector<forge::FileWrite> files;  // The files that have to be written there.
  std::vector<std::string> merged;      // Paths that changed on both sides, and were merged.
  std::vector<std::string> conflicts;   // Paths that cannot be merged; then `files` is not whole.
};
// Moves `files`, planned for the commit of `seen`, to the commit of `head`.
Result<MergedFiles> MergeFiles(std::vector<forge::FileWrite> files, const CommitTree& seen,
                               const CommitTree& head);

}  // namespace post
