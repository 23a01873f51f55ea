// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/forge.h"

#include "forge/gitlab/event.h"
#include "forge/gitlab/job_token.h"
#include "forge/gitlab/labels.h"
#include "forge/gitlab/page.h"
#include "forge/gitlab/statuses.h"
#include "forge/objects.h"

namespace forge {

namespace {

constexpr const char* kVariables[] = {
    "GITLAB_CI",          "CI_SERVER",     "CI_SERVER_URL", "CI_PIPELINE_ID", "CI_PIPELINE_IID",
    "CI_PIPELINE_SOURCE", "CI_PROJECT_ID", "CI_JOB_ID",     "CI_RUNNER_ID",   "CI_API_V4_URL",
};
constexpr const char* kFlags[] = {"GITLAB_CI"};
constexpr std::string_view kPrefixes[] = {"GITLAB_", "CI_"};
// Values of CI_PIPELINE_SOURCE.
constexpr std::string_view kEvents[] = {"api",
                                        "chat",
                                        "external_pull_request_event",
                                        "merge_request_event",
                                        "parent_pipeline",
                                        "pipeline",
                                        "push",
                                        "schedule",
                                        "trigger",
                                        "web"};

}  // namespace

constexpr Facts kGitLabFacts = {
    .kind = ForgeKind::kGitLab,
    .name = "gitlab",
    .can = {.names = "GitLab",
            .proposal = "merge request",
            .sigil = '!',
            .comments_on_files = true,
            .suggestions = true,
            .status_of_proposal = true,
            .exact_commits = false},
    .variables = kVariables,
    .flags = kFlags,
    .prefixes = kPrefixes,
    .parse_event = [](const EnvironmentReader& environment,
                      std::string_view) { return ReadGitLabEvent(Variables(environment)); },
    .parse_text = [](const EnvironmentReader& environment, std::string_view) -> Result<EventText> {
      return ReadGitLabText(environment);
    },
    .events = kEvents,
    .log_commands = codec::LogCommands::kNone,
    .folds_log = true,
    .starter = StarterProof::kSignature,
    .verify = VerifyGitLabEvent,
    .id_token = kGitLabTokenVariable,
    .id_token_hint = "id_tokens: { AGENTIC_CI_ID_TOKEN: { aud: agentic-ci } }",
    .api_ending = "/api/v4",
    .valid_repository = ValidProject,
    .repository = "project",
    .repository_form = "GROUP/NAME",
    .token = "GITLAB_TOKEN",
    .weak_token = "CI_JOB_TOKEN",
    .findings_elsewhere = "this log and in gl-code-quality-report.json",
    .client =
        [](const Place& place) {
          return GitLabClient({place.repository, place.project_id}, place.number);
        },
    .open = OpenAs<GitLab>,
    .find_page = FindGitLabPage,
};

Result<std::optional<std::string>> GitLab::ReadFile(const std::string& path,
                                                    const std::string& commit, Deadline deadline) {
  ApiPath file = (project_.Path() / "repository" / "files" / path).Query("ref", commit);
  return ReadFileOf(client_.Get(file, kGitLabPermission, deadline), path, commit);
}

Status GitLab::KeepStatus(const CommitStatus& status, Deadline deadline) {
  return KeepGitLabStatus(client_, project_, status, deadline);
}

Status GitLab::AddLabels(int64_t number, const std::vector<std::string>& names, Deadline deadline) {
  return AddGitLabLabels(client_, project_, number, names, deadline);
}

}  // namespace forge
