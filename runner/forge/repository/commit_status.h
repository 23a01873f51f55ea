// SPDX-License-Identifier: Apache-2.0
// A commit status, on GitHub, Gitea and Forgejo.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"

namespace forge {

struct CommitStatus {
  std::string sha;
  std::string context;  // What tells it from others: later ones replace it.
  std::string state;    // "success" or "failure".
  std::string description;
  std::string target_url;  // May be empty.
};

// Sets the status, unless it says the same already.
Status KeepStatus(Client& client, const std::string& repository, const CommitStatus& status,
                  Deadline deadline);

}  // namespace forge
