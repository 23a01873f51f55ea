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

namespace forge {

// What posting to a pull request takes of a workflow's token.
inline constexpr char kPullsPermission[] = "permissions: { pull-requests: write }";

struct Comment {
  int64_t id = 0;
  int64_t author_id = 0;  // 0: the account was deleted.
  std::string author_login;
  std::string url;  // For people; empty when the service gave none that is an http address.
  std::string text;
};

// Whose token it is. An id of 0 is not known, then the login decides.
struct Viewer {
  int64_t id = 0;
  std::string login;
  bool Wrote(int64_t author_id, const std::string& author_login) const;
};

// GET /user knows people's tokens; installation tokens (GITHUB_TOKEN is one) get 403 there and are
// known to GraphQL; where that is not to be had, the Actions' own account is assumed.
Result<Viewer> WhoAmI(Client& client, Deadline deadline);

// Where GraphQL is, beside `api_url`: GitHub Enterprise Server has REST at /api/v3 and GraphQL at
// /api/graphql; GitHub has /graphql.
std::string GraphQlUrl(std::string api_url);

// The comments on one pull request, as one token may see and change them. Borrows the client. The
// values of a dry run are empty.
class GitHubComments {
 public:
  GitHubComments(Client& client, const std::string& repository, int64_t proposal_number);

  // All of them, oldest first; kInvalid beyond 10 000.
  Result<std::vector<Comment>> List(Deadline deadline);
  // Not repeated when it may have arrived: kTemporary then, and the caller looks whether it did.
  Result<Comment> Create(const std::string& text, Deadline deadline);
  // kNotFound when the comment is gone.
  Result<Comment> Update(int64_t id, const std::string& text, Deadline deadline);
  // A comment that is gone already is a success.
  Status Delete(int64_t id, Deadline deadline);

 private:
  Result<Comment> Write(WriteRequest request, const std::string& text, Deadline deadline);

  Client& client_;
  std::string repository_;  // "/repos/OWNER/NAME"
  std::string conversation_;
};

}  // namespace forge
