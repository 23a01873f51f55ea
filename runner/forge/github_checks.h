// SPDX-License-Identifier: Apache-2.0
// A check run with annotations, by GitHub's REST API.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/actions.h"
#include "forge/client.h"

namespace forge {

struct CheckRun {
  std::string name;         // As people see it, and as branch protection names it.
  std::string external_id;  // The same for the same report: what tells a repetition.
  std::string head_sha;
  std::string conclusion;  // "success", "neutral" or "failure".
  std::string title;
  std::string summary;  // Markdown; cut at GitHub's bound of 65 535 characters.
  std::string details_url;
  std::vector<Annotation> annotations;
};

// Makes the check run say all of it, in batches of 50 annotations, GitHub's bound. One that was
// begun for the same report and not finished is continued, a finished one stays as it is.
Status PostCheckRun(Client& client, const std::string& repository, const CheckRun& run,
                    Deadline deadline);

}  // namespace forge
