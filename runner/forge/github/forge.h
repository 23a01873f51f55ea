// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forge/facts.h"
#include "forge/github/branches.h"
#include "forge/github/reviews.h"
#include "forge/rest/forge.h"

namespace forge {

extern const Facts kGitHubFacts;

// GitHub, and GitHub Enterprise Server. Borrows the client.
class GitHub : public RestForge {
 public:
  GitHub(Client& client, const Place& place)
      : RestForge(client, place),
        reviews_(client, place.repository, place.number),
        branches_(client, place.repository) {}

  const Capabilities& capabilities() const override { return kGitHubFacts.can; }
  Reviews& reviews() override { return reviews_; }
  Branches& branches() override { return branches_; }
  Status PostCheckRun(const CheckRun& run, Deadline deadline) override;
  Status UploadSarif(const SarifUpload& upload, Deadline deadline) override;
  Status StoreStatement(const StatementUpload& upload, Deadline deadline) override;
  Result<std::vector<std::string>> FindStatements(const std::string& predicate_type,
                                                  const std::string& sha256,
                                                  Deadline deadline) override;

 private:
  GitHubReviews reviews_;
  GitHubBranches branches_;
};

}  // namespace forge
