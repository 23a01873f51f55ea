// SPDX-License-Identifier: Apache-2.0
// A check run with annotations, by GitHub's REST API.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/statuses.h"

namespace forge {

// Makes the check run say all of it, in batches of 50 annotations, GitHub's bound. One that was
// begun for the same report and not finished is continued, once nothing moves it any more; a
// finished one stays as it is. If several posts began one at the same moment, one has the
// annotations, and the others its conclusion.
Status PostCheckRun(Client& client, const std::string& repository, const CheckRun& run,
                    Deadline deadline);

}  // namespace forge
