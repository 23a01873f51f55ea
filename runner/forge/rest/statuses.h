// SPDX-License-Identifier: Apache-2.0
// A commit status, on GitHub, Gitea and Forgejo.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/statuses.h"

namespace forge {

// Sets the status, unless it says the same already.
Status KeepStatus(Client& client, const std::string& repository, const CommitStatus& status,
                  Deadline deadline);

}  // namespace forge
