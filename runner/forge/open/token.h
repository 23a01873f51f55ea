// SPDX-License-Identifier: Apache-2.0
// The token that posts: the value of a variable, or the token of an application whose key is in
// one.
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
  bool of_app = false;  // Facts::revoke revokes it.
};

// Takes the token. Where both variables of an application are set, the forge is asked for a token
// with `permissions`, with a client of `options`. Fails with kSetup if no token is there (the hint
// is options.token_hint), if only one of the two variables is set, and if the forge has no
// applications; and as Facts::app_token.
Result<PostingToken> TakePostingToken(const EnvironmentReader& environment, const Facts& facts,
                                      const ClientOptions& options, const std::string& repository,
                                      const std::vector<std::string>& permissions,
                                      Deadline deadline);

// Revokes an application's token when it is destroyed, so that each way out of a post does. Logs a
// warning if the token cannot be revoked.
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
