// SPDX-License-Identifier: Apache-2.0
// Labels of a pull request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"

namespace forge {

// Adds the labels that the pull request does not have. GitHub creates a label that does not exist;
// fails with kInvalid if the forge does not (Gitea), with its name.
Status AddLabels(Client& client, const std::string& repository, int64_t number,
                 const std::vector<std::string>& names, Deadline deadline);

}  // namespace forge
