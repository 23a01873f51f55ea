// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/page.h"

#include <algorithm>

#include "codec/text/quantity.h"
#include "forge/api_path.h"
#include "forge/gitlab/notes.h"

namespace forge {
std::string PageAddress(const codec::Json& jobs, const std::string& job, const Event& event,
                        const std::string& report_dir) {
  int64_t latest = 0;
  if (jobs.array() == nullptr) return "";
  for (const codec::Json& one : *jobs.array()) {
    if (one.StringAt("name") == job) latest = std::max(latest, one.IntegerAt("id"));
  }
  std::string inside = report_dir;
  while (inside.starts_with("./")) inside.erase(0, 2);
  const ApiPath path = ApiPath().Below(inside) / "report.html";
  if (latest == 0 || inside.starts_with('/') || !path.valid()) return "";
  return event.server_url + "/" + event.repository + "/-/jobs/" + std::to_string(latest) +
         "/artifacts/file" + path.text();
}

std::string FindGitLabPage(Client& client, const EnvironmentReader& environment, const Event& event,
                           const std::string& report_dir, Deadline deadline) {
  const std::string job = environment("AGENTIC_CI_RUN_JOB").value_or("");
  const Result<int64_t> pipeline = codec::ParseCount(environment("CI_PIPELINE_ID").value_or(""));
  if (job.empty() || event.forge != ForgeKind::kGitLab || !pipeline.ok()) return "";
  const ApiPath path =
      ApiPath() / "projects" / event.project_id / "pipelines" / pipeline.value() / "jobs";
  Result<codec::Json> jobs = client.Get(path.Query("per_page", 100), kGitLabPermission, deadline);
  // Without the link, the comment is what it would have been.
  return jobs.ok() ? PageAddress(jobs.value(), job, event, report_dir) : "";
}

}  // namespace forge
