// SPDX-License-Identifier: Apache-2.0
// The token of a GitHub App's installation, for posts that come from a team's own application.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "forge/client.h"
#include "forge/facts.h"

namespace forge {

// Asks for a token for `repository` alone, with `permissions` alone ("pull_requests"), each to
// write. `options` are the client's, without a token. Fails with kSetup for a key that is not one,
// or that GitHub does not know, with kRefused if the application is not installed there or lacks a
// permission, and as Client's requests.
Result<Secret> TakeAppToken(const ClientOptions& options, const std::string& repository,
                            const AppKey& key, const std::vector<std::string>& permissions,
                            Deadline deadline);

// Ends the client's token, which would last an hour.
Status RevokeAppToken(Client& client, Deadline deadline);

}  // namespace forge
