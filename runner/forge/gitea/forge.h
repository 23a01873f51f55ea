// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "forge/gitea/branches.h"
#include "forge/gitea/reviews.h"
#include "forge/rest/forge.h"

namespace forge {

// Gitea and Forgejo. Borrows the client.
class Gitea : public RestForge {
 public:
  Gitea(Client& client, const Place& place)
      : RestForge(client, place),
        reviews_(client, place.repository, place.number),
        branches_(client, place.repository) {}

  static const Capabilities& Can();
  const Capabilities& capabilities() const override { return Can(); }
  Reviews& reviews() override { return reviews_; }
  Branches& branches() override { return branches_; }

 private:
  GiteaReviews reviews_;
  GiteaBranches branches_;
};

}  // namespace forge
