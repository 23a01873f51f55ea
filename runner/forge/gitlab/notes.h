// SPDX-License-Identifier: Apache-2.0
// GitLab's REST API: a project, whose token it is, and the notes of a merge request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forge/client.h"
#include "forge/comments.h"

namespace forge {

// The permission that posting to a merge request requires of a token. (Guests may comment;
// resolving a thread of a merge request, and setting a commit's status, takes a Developer.)
inline constexpr char kGitLabPermission[] =
    "GITLAB_TOKEN: a project access token with the role Developer and the scope api";

struct GitLabProject {
  std::string path;  // "group/.../name".
  int64_t id = 0;  // Goes before the path, which may be another project's one day; 0 if not known.

  // Returns "/projects/21", or its path as one segment.
  ApiPath Path() const;
};

// Returns the options that all requests to GitLab share. The service's address and the token are
// left to the caller.
ClientOptions GitLabClient(const GitLabProject& project, int64_t merge_request);

// Asks GET /user: people's, projects' and groups' tokens all have a user.
Result<Viewer> GitLabViewer(Client& client, Deadline deadline);

// Borrows the client.
class GitLabNotes : public Comments {
 public:
  GitLabNotes(Client& client, const GitLabProject& project, int64_t merge_request);

  // Notes beside lines are among them, notes by GitLab itself are not.
  Result<std::vector<Comment>> List(Deadline deadline) override;
  Result<Comment> Create(const std::string& text, Deadline deadline) override;
  Result<Comment> Update(int64_t id, const std::string& text, Deadline deadline) override;
  Status Delete(int64_t id, Deadline deadline) override;

 private:
  Result<Comment> Read(const codec::Json& json) const;
  Result<Comment> Write(WriteRequest request, const std::string& text, Deadline deadline);

  Client& client_;
  ApiPath notes_;     // "/projects/21/merge_requests/7/notes"
  std::string page_;  // The merge request, for people.
};

}  // namespace forge
