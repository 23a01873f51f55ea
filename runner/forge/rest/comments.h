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

// The permission that posting to a pull request requires of a workflow's token.
inline constexpr char kPullsPermission[] = "permissions: { pull-requests: write }";

// Returns the options that all requests to GitHub, or to Gitea, share. The token and the way to
// reach the service are left to the caller.
ClientOptions RestClient(const std::string& repository, int64_t proposal_number, bool gitea);

// Asks GET /user, which knows people's tokens; installation tokens (GITHUB_TOKEN is one) get 403
// there and are known to GraphQL; where that is not to be had, the Actions' own account is assumed.
Result<Viewer> WhoAmI(Client& client, Deadline deadline);

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
  ApiPath repository_;
  ApiPath conversation_;
};

}  // namespace forge
