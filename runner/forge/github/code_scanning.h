// SPDX-License-Identifier: Apache-2.0
// GitHub's code scanning: the alerts of a repository, from SARIF.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/statuses.h"

namespace forge {

// Uploads one log. GitHub keeps one analysis per tool, category and commit, so that the same log
// again replaces the earlier one. Fails with kRefused (403) also if code scanning is not enabled;
// with kInvalid for a log that is larger than GitHub accepts.
Status UploadSarif(Client& client, const std::string& repository, const SarifUpload& upload,
                   Deadline deadline);

}  // namespace forge
