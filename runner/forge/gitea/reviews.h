// SPDX-License-Identifier: Apache-2.0
// Reviews by the REST API of Gitea and Forgejo.
//
// Not available there: comments on several lines (the last line gets the comment), comments on
// files, and whether a comment's lines have changed since.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forge/client.h"
#include "forge/comments.h"
#include "forge/reviews.h"

namespace forge {

// Borrows the client.
class GiteaReviews : public Reviews {
 public:
  GiteaReviews(Client& client, const std::string& repository, int64_t number);

  Result<Proposal> ReadProposal(Deadline deadline) override;
  Result<std::vector<DiffFile>> ReadFiles(Deadline deadline) override;
  // Each comment of this program's is a thread, with what people wrote at its line since.
  Result<std::vector<ReviewThread>> ReadThreads(Deadline deadline) override;
  Status Post(const std::string& head_sha, const std::string& text,
              const std::vector<ReviewComment>& comments, Deadline deadline) override;
  Status PostOnFile(const std::string& head_sha, const std::string& path, const std::string& text,
                    Deadline deadline) override;
  // Gitea 1.26 and newer.
  Status Resolve(const std::string& thread_id, Deadline deadline) override;
  Status Reopen(const std::string& thread_id, Deadline deadline) override;
  Status DeleteComment(int64_t id, Deadline deadline) override;
  Status Retire(int64_t review_id, Deadline deadline) override;

 private:
  ReviewThread ReadThread(const codec::Json& comment, const Viewer& viewer) const;
  // Returns nothing for a review that is gone.
  Result<std::vector<codec::Json>> ReadComments(int64_t review_id, Deadline deadline);
  Status Settle(const std::string& thread_id, const char* how, Deadline deadline);

  Client& client_;
  ApiPath repository_;
  ApiPath pull_;  // "/repos/OWNER/NAME/pulls/NUMBER"
  ApiPath diff_;
  std::string head_sha_;  // Read by ReadProposal().
};

}  // namespace forge
