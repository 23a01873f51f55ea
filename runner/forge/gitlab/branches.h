// SPDX-License-Identifier: Apache-2.0
// Commits and branches on GitLab, through its commits API. The interface is forge/forge.h's.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forge/branches.h"
#include "forge/client.h"
#include "forge/gitlab/notes.h"

namespace forge {

// One request to GitLab's commits API makes the commit, without `force`. It compares the files that
// are changed or deleted, not the branch, with what they were at the tip: a commit to other files
// that comes between the last look at the branch and the request is kept, beneath ours.
class GitLabBranches : public Branches {
 public:
  GitLabBranches(Client& client, GitLabProject project)
      : client_(client), project_(std::move(project)) {}

  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                Deadline deadline) override;
  // `tree` is the commit, since the API knows no tree by its hash.
  Result<Tree> ReadTree(const std::string& tree, Deadline deadline) override;
  Result<std::string> ReadBlob(const std::string& id, Deadline deadline) override;
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  bool moved() const override { return moved_; }
  // Refuses symbolic links, and a second parent.
  std::string CannotCommit(const CommitRequest& request) const override;
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;
  // Opens a merge request whose branch GitLab deletes once it is merged.
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;
  Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) override;

 private:
  Error Moved(Error error);
  Status CheckTip(const CommitRequest& request, Deadline deadline);

  Client& client_;
  GitLabProject project_;
  bool moved_ = false;
};

}  // namespace forge
