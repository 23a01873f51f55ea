// SPDX-License-Identifier: Apache-2.0
// The branches of GitHub and Gitea, as far as they are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forge/branches.h"
#include "forge/client.h"

namespace forge {

// The permission that writing to a branch requires of a workflow's token.
inline constexpr char kContentsPermission[] = "permissions: { contents: write }";

// Borrows the client.
class RestBranches : public Branches {
 public:
  RestBranches(Client& client, const std::string& repository);

  Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                Deadline deadline) override;
  Result<Tree> ReadTree(const std::string& tree, Deadline deadline) override;
  Result<std::string> ReadBlob(const std::string& id, Deadline deadline) override;
  bool moved() const override { return moved_; }
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;
  Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) override;

 protected:
  // Notes in moved_ whether the last failure says that the branch, or the pull request, is not as
  // it was; returns `error`.
  Error Moved(Error error);
  // Reads all pages of a tree.
  Result<Tree> ReadEntries(const ApiPath& tree, Deadline deadline);
  static Result<BranchPullRequest> ReadOpen(const codec::Json& json);
  // Return the rest of the queries for a history, and for the `page`-th part of a tree.
  virtual ApiPath HistoryOf(const ApiPath& commits, int count) const = 0;
  virtual ApiPath PageOf(const ApiPath& tree, int page) const = 0;
  // Returns whether a tree comes in pages.
  virtual bool has_pages() const = 0;

  Client& client_;
  std::string owner_;
  ApiPath repository_;
  bool moved_ = false;
};

}  // namespace forge
