// SPDX-License-Identifier: Apache-2.0
// The few operations of GitHub's REST API that posting takes, with its answers turned into errors a
// user can act on. Gitea answers the same requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "codec/data/json.h"
#include "net/http_client.h"

namespace forge {

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
  bool Wrote(const Comment& comment) const;
};

// The comments on one pull request, as one token may see and change them. Borrows the token.
class GitHubComments {
 public:
  GitHubComments(net::HttpClient client, std::string api_url, std::string repository,
                 int64_t proposal_number, const Secret& token);

  // GET /user knows people's tokens; installation tokens (GITHUB_TOKEN is one) get 403 there and
  // are known to GraphQL; where that is not to be had, the Actions' own account is assumed.
  Result<Viewer> WhoAmI(Deadline deadline);
  // All of them, oldest first; kInvalid beyond 10 000.
  Result<std::vector<Comment>> List(Deadline deadline);
  // Not repeated when it may have arrived: kTemporary then, and the caller looks whether it did.
  Result<Comment> Create(const std::string& text, Deadline deadline);
  // kNotFound when the comment is gone.
  Result<Comment> Update(int64_t id, const std::string& text, Deadline deadline);
  // A comment that is gone already is a success.
  Status Delete(int64_t id, Deadline deadline);

 private:
  Result<net::HttpResponse> Send(const std::string& method, const std::string& path,
                                 const std::string& body, bool repeatable, Deadline deadline);
  Result<Viewer> AskGraphQl(Deadline deadline);
  Error Explain(const net::HttpResponse& response) const;

  net::HttpClient client_;
  std::string api_url_;
  std::string repository_;
  int64_t proposal_number_;
  const Secret& token_;
};

}  // namespace forge
