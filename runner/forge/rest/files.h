// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"

namespace forge {

// Reads the file `path` of a commit by the contents API, of at most 1 MiB. GitHub refuses branches
// and tags that are called like an id. Returns nullopt if there is none; fails with kInvalid if it
// is not a file, or larger.
Result<std::optional<std::string>> ReadRepositoryFile(Client& client, const std::string& repository,
                                                      const std::string& path,
                                                      const std::string& commit, Deadline deadline);

}  // namespace forge
