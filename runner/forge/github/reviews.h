// SPDX-License-Identifier: Apache-2.0
// Reviews by GitHub's REST and GraphQL APIs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forge/client.h"
#include "forge/reviews.h"

namespace forge {

// Borrows the client.
class GitHubReviews : public Reviews {
 public:
  GitHubReviews(Client& client, const std::string& repository, int64_t number);

  Result<Proposal> ReadProposal(Deadline deadline) override;
  // Reads at most 3000 files: GitHub lists no more.
  Result<std::vector<DiffFile>> ReadFiles(Deadline deadline) override;
  Result<std::vector<ReviewThread>> ReadThreads(Deadline deadline) override;
  Status Post(const std::string& head_sha, const std::string& text,
              const std::vector<ReviewComment>& comments, Deadline deadline) override;
  Status PostOnFile(const std::string& head_sha, const std::string& path, const std::string& text,
                    Deadline deadline) override;
  Status Resolve(const std::string& thread_id, Deadline deadline) override;
  Status Reopen(const std::string& thread_id, Deadline deadline) override;
  Status Hide(const ReviewThread& thread, Deadline deadline) override;
  Status DeleteComment(int64_t id, Deadline deadline) override;
  Status Retire(int64_t review_id, Deadline deadline) override;

 private:
  void ReadEmptyReviews(const codec::Json* nodes);
  Status Mutate(const char* mutation, const std::string& id, Deadline deadline);

  Client& client_;
  std::string owner_;
  std::string name_;
  ApiPath repository_;
  int64_t number_;
  ApiPath pull_;  // "/repos/OWNER/NAME/pulls/NUMBER"
};

}  // namespace forge
