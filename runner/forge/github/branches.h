// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "forge/rest/branches.h"

namespace forge {

// Borrows the client.
class GitHubBranches : public RestBranches {
 public:
  using RestBranches::RestBranches;
  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  // Blobs, tree, commit and reference through the Git data API. Neither author nor committer is
  // given, so GitHub signs the commit for the token's application.
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  std::string verification() const override { return verification_; }
  std::string CannotCommit(const CommitRequest&) const override { return ""; }
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;

 protected:
  ApiPath HistoryOf(const ApiPath& commits, int count) const override {
    return commits.Query("per_page", count);
  }
  ApiPath PageOf(const ApiPath& tree, int) const override { return tree; }
  bool has_pages() const override { return false; }

 private:
  Result<codec::Json> RenderTree(const CommitRequest& request, Deadline deadline);
  Status PointBranch(const CommitRequest& request, const std::string& commit, Deadline deadline);

  std::string verification_;
};

}  // namespace forge
