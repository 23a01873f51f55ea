// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"

namespace forge {

// Reads the file `path` of a repository at `ref`, by the contents API of GitHub, Gitea and Forgejo,
// of at most 1 MiB. Returns nullopt if there is none; fails with kInvalid if it is not a file, or
// larger.
Result<std::optional<std::string>> ReadRepositoryFile(Client& client, const std::string& repository,
                                                      const std::string& path,
                                                      const std::string& ref, Deadline deadline);

}  // namespace forge
