// SPDX-License-Identifier: Apache-2.0
// All that the command line knows of GitLab: where a report is posted, with which token, and what a
// job's log says instead.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "base/secret.h"
#include "cli/arguments.h"
#include "codec/data/json.h"
#include "forge/client.h"
#include "forge/event.h"
#include "forge/forge.h"
#include "report/read.h"

namespace cli {

// Returns whether the API that `post` speaks to is GitLab's: its address, of --api-url or else of
// the event, ends with /api/v4.
bool PostsToGitLab(const Arguments& arguments, const forge::Event& event);

// Returns the project, and the merge request (0 if none), that the options or the event name. Fails
// with kSetup or kUsage.
Result<forge::Place> GitLabPlace(const Arguments& arguments, const forge::Event& event);

// Returns GITLAB_TOKEN. Fails with kSetup if it is not set, even if CI_JOB_TOKEN is, which may not
// post.
Result<Secret> GitLabToken();

// Returns the address of the report's page among the artifacts of the job `job`: the latest of that
// name in `jobs`, GitLab's list of a pipeline's jobs. Empty if there is none, or if the report lies
// outside of the project's directory. Pure.
std::string PageAddress(const codec::Json& jobs, const std::string& job, const forge::Event& event,
                        const std::string& report_dir);

// Returns that of the pipeline that this job, of the component `post`, belongs to. Empty in another
// job, or if GitLab does not say.
std::string FindPage(forge::Client& client, const forge::Event& event,
                     const std::string& report_dir, Deadline deadline);

// Returns every finding, the agent's, the gates' and refused requests', as a line of a job's log:
// what is left where something could not be posted. "src/a.c:3: warning: text [rule]"
std::string FindingLines(const report::PostedReport& report);

}  // namespace cli
