// SPDX-License-Identifier: Apache-2.0
// The discussions of a merge request, by GitLab's REST API.
//
// GitLab has no review that carries comments: each is a discussion of its own. It does not say
// either whether a discussion is outdated: one whose lines a push has left as they were is moved to
// the new head by GitLab, so one at another head is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "forge/gitlab/notes.h"
#include "forge/reviews.h"

namespace forge {

// Borrows the client.
class GitLabDiscussions : public Reviews {
 public:
  GitLabDiscussions(Client& client, const GitLabProject& project, int64_t merge_request);

  Result<Proposal> ReadProposal(Deadline deadline) override;
  // Only after ReadProposal does Post know where lines are.
  Result<std::vector<DiffFile>> ReadFiles(Deadline deadline) override;
  Result<std::vector<ReviewThread>> ReadThreads(Deadline deadline) override;
  // Takes one comment; `text` is not posted.
  Status Post(const std::string& head_sha, const std::string& text,
              const std::vector<ReviewComment>& comments, Deadline deadline) override;
  // GitLab 16.4 and newer.
  Status PostOnFile(const std::string& head_sha, const std::string& path, const std::string& text,
                    Deadline deadline) override;
  Status Resolve(const std::string& thread_id, Deadline deadline) override;
  Status Reopen(const std::string& thread_id, Deadline deadline) override;
  Status DeleteComment(int64_t id, Deadline deadline) override;

  size_t comments_max() const override { return 1; }
  std::string SuggestionFence(int lines) const override;

 private:
  // The commits between which GitLab shows the difference.
  struct Refs {
    std::string base;
    std::string start;
    std::string head;
    bool operator==(const Refs&) const = default;
  };
  Status Settle(const std::string& thread_id, bool resolved, Deadline deadline);
  static Refs ReadRefs(const codec::Json* json);
  Status Start(const codec::Json& position, const std::string& text, Deadline deadline);
  codec::Json Position(const std::string& type, const std::string& path) const;

  Client& client_;
  ApiPath request_;  // "/projects/21/merge_requests/7"
  GitLabNotes notes_;
  Refs refs_;
  std::vector<DiffFile> files_;
  std::optional<Viewer> viewer_;
};

}  // namespace forge
