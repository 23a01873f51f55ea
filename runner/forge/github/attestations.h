// SPDX-License-Identifier: Apache-2.0
// GitHub's store of attestations.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/statuses.h"

namespace forge {

// Stores the statement, unless it is there. GitHub takes those that were signed with the identity
// of a job of the repository; of others, it says that they are not valid (kInvalid).
Status StoreStatement(Client& client, const std::string& repository, const StatementUpload& upload,
                      Deadline deadline);

// Returns the bundles, as JSON, of statements of that type about what has that SHA-256: at most
// 100. They are not to be believed.
Result<std::vector<std::string>> FindStatements(Client& client, const std::string& repository,
                                                const std::string& predicate_type,
                                                const std::string& sha256, Deadline deadline);

}  // namespace forge
