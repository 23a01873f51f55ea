// SPDX-License-Identifier: Apache-2.0
#include "cli/gitlab.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "codec/text/neutral.h"
#include "codec/text/quantity.h"
#include "forge/api_path.h"
#include "forge/gitlab/notes.h"
#include "report/findings.h"

namespace cli {
namespace {

constexpr size_t kLogLineBytesMax = 2000;

}  // namespace

bool PostsToGitLab(const Arguments& arguments, const forge::Event& event) {
  std::string url = arguments.Get("api-url", event.api_url);
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with("/api/v4");
}

Result<forge::Place> GitLabPlace(const Arguments& arguments, const forge::Event& event) {
  // Another forge's event names nothing here.
  const bool own = event.forge == forge::ForgeKind::kGitLab;
  forge::Place place;
  place.kind = forge::ForgeKind::kGitLab;
  place.repository = arguments.Get("repository", own ? event.repository : "");
  if (place.repository.empty()) {
    return Error{Code::kSetup, "the event does not name a project", "--repository GROUP/NAME"};
  }
  if (!forge::ValidProject(place.repository)) {
    return Error{Code::kUsage, "--repository: '" + place.repository + "' is not GROUP/NAME"};
  }
  if (own && place.repository == event.repository) place.project_id = event.project_id;
  if (arguments.Has("number")) {
    Result<int64_t> number = codec::ParseCount(arguments.Get("number"));
    if (!number.ok()) return Error{Code::kUsage, "--number: " + number.error().what};
    place.number = number.value();
  } else if (own) {
    place.number = event.proposal_number;
  }
  return place;
}

Result<Secret> GitLabToken() {
  std::optional<std::string> token = sys::Environment("GITLAB_TOKEN");
  if (token && !token->empty()) return Secret(*token);
  std::string what = "GITLAB_TOKEN is not set";
  std::optional<std::string> job_token = sys::Environment("CI_JOB_TOKEN");
  if (job_token && !job_token->empty()) {
    what +=
        ", and CI_JOB_TOKEN may not post: the findings are in this log and in "
        "gl-code-quality-report.json";
  }
  return Error{Code::kSetup, what, forge::kGitLabPermission};
}

std::string PageAddress(const codec::Json& jobs, const std::string& job, const forge::Event& event,
                        const std::string& report_dir) {
  int64_t latest = 0;
  if (jobs.array() == nullptr) return "";
  for (const codec::Json& one : *jobs.array()) {
    if (one.StringAt("name") == job) latest = std::max(latest, one.IntegerAt("id"));
  }
  std::string inside = report_dir;
  while (inside.starts_with("./")) inside.erase(0, 2);
  const forge::ApiPath path = forge::ApiPath().Below(inside) / "report.html";
  if (latest == 0 || inside.starts_with('/') || !path.valid()) return "";
  return event.server_url + "/" + event.repository + "/-/jobs/" + std::to_string(latest) +
         "/artifacts/file" + path.text();
}

std::string FindPage(forge::Client& client, const forge::Event& event,
                     const std::string& report_dir, Deadline deadline) {
  const std::string job = sys::Environment("AGENTIC_CI_RUN_JOB").value_or("");
  const Result<int64_t> pipeline =
      codec::ParseCount(sys::Environment("CI_PIPELINE_ID").value_or(""));
  if (job.empty() || event.forge != forge::ForgeKind::kGitLab || !pipeline.ok()) return "";
  const forge::ApiPath path =
      forge::ApiPath() / "projects" / event.project_id / "pipelines" / pipeline.value() / "jobs";
  Result<codec::Json> jobs =
      client.Get(path.Query("per_page", 100), forge::kGitLabPermission, deadline);
  // Without the link, the comment is what it would have been.
  return jobs.ok() ? PageAddress(jobs.value(), job, event, report_dir) : "";
}

std::string FindingLines(const report::PostedReport& report) {
  std::string lines;
  for (const report::Finding& finding : report::ListFindings(report.record)) {
    const bool placed = !finding.path.empty();
    std::string where = finding.path;
    if (placed && finding.line > 0) where += ":" + std::to_string(finding.line);
    if (placed) where += ": ";
    std::string level = finding.refuses ? "refused" : report::Render(finding.severity);
    lines += codec::NeutralLine(where + level + ": " + finding.message + " [" + finding.rule + "]",
                                kLogLineBytesMax) +
             "\n";
  }
  return lines;
}

}  // namespace cli
