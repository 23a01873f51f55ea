// SPDX-License-Identifier: Apache-2.0
// Commits and branches on Gitea and Forgejo, through their contents API. The interface is
// forge/forge.h's.
#pragma once

#include <optional>
#include <string>

#include "forge/rest/branches.h"

namespace forge {

// Gitea and Forgejo have no Git data API: the contents API makes the commit, and checks each old
// file by its hash.
class GiteaBranches : public RestBranches {
 public:
  using RestBranches::RestBranches;
  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  // Forge::ReadFile(), from one object of git to the next.
  Result<std::optional<std::string>> ReadFile(const std::string& path, const std::string& commit,
                                              Deadline deadline);
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  std::string CannotCommit(const CommitRequest& request) const override;
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;

 protected:
  ApiPath HistoryOf(const ApiPath& commits, int count) const override {
    return commits.Query("limit", count)
        .Query("stat", "false")
        .Query("verification", "false")
        .Query("files", "false");
  }
  ApiPath PageOf(const ApiPath& tree, int page) const override {
    return tree.Query("per_page", 1000).Query("page", page);
  }
  bool has_pages() const override { return true; }

 private:
  Status PlaceBranch(const CommitRequest& request, Deadline deadline);
  Error MovedOrLost(Error error);
};

}  // namespace forge
