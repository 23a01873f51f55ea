// SPDX-License-Identifier: Apache-2.0
// Comments in the conversation of a pull request, by GitHub's REST API. Gitea answers the same
// requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/comments.h"

namespace forge {

// What posting to a pull request takes of a workflow's token.
inline constexpr char kPullsPermission[] = "permissions: { pull-requests: write }";

// GET /user knows people's tokens; installation tokens (GITHUB_TOKEN is one) get 403 there and are
// known to GraphQL; where that is not to be had, the Actions' own account is assumed.
Result<Viewer> WhoAmI(Client& client, Deadline deadline);

// Where GraphQL is, beside `api_url`: GitHub Enterprise Server has REST at /api/v3 and GraphQL at
// /api/graphql; GitHub has /graphql.
std::string GraphQlUrl(std::string api_url);

// Borrows the client.
class GitHubComments : public Comments {
 public:
  GitHubComments(Client& client, const std::string& repository, int64_t proposal_number);

  Result<std::vector<Comment>> List(Deadline deadline) override;
  Result<Comment> Create(const std::string& text, Deadline deadline) override;
  Result<Comment> Update(int64_t id, const std::string& text, Deadline deadline) override;
  Status Delete(int64_t id, Deadline deadline) override;

 private:
  Result<Comment> Write(WriteRequest request, const std::string& text, Deadline deadline);

  Client& client_;
  std::string repository_;  // "/repos/OWNER/NAME"
  std::string conversation_;
};

}  // namespace forge
