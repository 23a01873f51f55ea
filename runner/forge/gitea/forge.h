// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "forge/facts.h"
#include "forge/gitea/branches.h"
#include "forge/gitea/reviews.h"
#include "forge/rest/forge.h"

namespace forge {

extern const Facts kGiteaFacts;

// Gitea and Forgejo. Borrows the client.
class Gitea : public RestForge {
 public:
  Gitea(Client& client, const Place& place)
      : RestForge(client, place),
        reviews_(client, place.repository, place.number),
        branches_(client, place.repository) {}

  const Capabilities& capabilities() const override { return kGiteaFacts.can; }
  Result<std::optional<std::string>> ReadFile(const std::string& path, const std::string& commit,
                                              Deadline deadline) override {
    return branches_.ReadFile(path, commit, deadline);
  }
  Reviews& reviews() override { return reviews_; }
  Branches& branches() override { return branches_; }

 private:
  GiteaReviews reviews_;
  GiteaBranches branches_;
};

}  // namespace forge
