// SPDX-License-Identifier: Apache-2.0
// The page of a report among the artifacts of a GitLab job.
#pragma once

#include <string>

#include "base/deadline.h"
#include "codec/data/json.h"
#include "forge/client.h"
#include "forge/event.h"

namespace forge {

// Returns the address of the report's page among the artifacts of the job `job`: the latest of that
// name in `jobs`, GitLab's list of a pipeline's jobs. Empty if there is none, or if the report lies
// outside of the project's directory. Pure.
std::string PageAddress(const codec::Json& jobs, const std::string& job, const Event& event,
                        const std::string& report_dir);

// Returns that of the pipeline that this job, of the component `post`, belongs to. Empty in another
// job, or if GitLab does not say.
std::string FindGitLabPage(Client& client, const EnvironmentReader& environment, const Event& event,
                           const std::string& report_dir, Deadline deadline);

}  // namespace forge
