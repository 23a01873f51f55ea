// SPDX-License-Identifier: Apache-2.0
// The token that posts: of a variable, or of an application whose key is in one.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/facts.h"

namespace forge {

inline constexpr char kAppIdVariable[] = "AGENTIC_CI_APP_ID";
inline constexpr char kAppKeyVariable[] = "AGENTIC_CI_APP_KEY";

struct PostingToken {
  Secret value;
  bool of_app = false;  // To be ended by Facts::revoke.
};

// Takes the token. Where the variables of an application are set, it is asked for with `options`
// and `permissions`. Fails with kSetup if there is none, with options.token_hint, or if only one of
// the two is set or the forge has no applications; and as Facts::app_token.
Result<PostingToken> TakePostingToken(const EnvironmentReader& environment, const Facts& facts,
                                      const ClientOptions& options, const std::string& repository,
                                      const std::vector<std::string>& permissions,
                                      Deadline deadline);

// Ends the token of an application, however a post ends; a token that cannot be ended is warned of.
class Revocation {
 public:
  // Borrows both. Does nothing unless `of_app`.
  Revocation(const Facts& facts, Client* client, bool of_app)
      : facts_(facts), client_(of_app ? client : nullptr) {}
  Revocation(const Revocation&) = delete;
  Revocation& operator=(const Revocation&) = delete;
  ~Revocation();

 private:
  const Facts& facts_;
  Client* client_;
};

}  // namespace forge
