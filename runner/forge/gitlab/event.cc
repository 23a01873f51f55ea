// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace forge {
namespace {

// Values of CI_PIPELINE_SOURCE that take the right to write to the project, or its trigger token.
// Not among them: external_pull_request_event and external, which are about another forge, and what
// GitLab may add.
constexpr std::array<std::string_view, 9> kOwnSources = {
    "api", "chat", "parent_pipeline", "pipeline", "push", "schedule", "trigger", "web", "webide"};

// Variables of every merge request's pipeline. Who sets a pipeline's variables can give them any
// value, and take none away.
constexpr std::array kMergeRequestVariables = {
    "CI_MERGE_REQUEST_ID",
    "CI_MERGE_REQUEST_IID",
    "CI_MERGE_REQUEST_EVENT_TYPE",
    "CI_MERGE_REQUEST_PROJECT_ID",
    "CI_MERGE_REQUEST_PROJECT_PATH",
    "CI_MERGE_REQUEST_PROJECT_URL",
    "CI_MERGE_REQUEST_REF_PATH",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
};

// Returns 0 if it is not a number.
int64_t NumberOf(const std::string& text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

EventKind KindOf(const std::string& source, bool about_merge_request) {
  if (about_merge_request) return EventKind::kPullRequest;
  return source == "push" ? EventKind::kPush : EventKind::kOther;
}

// Compares by id: a path can be given up, and then be taken by another project.
HeadOrigin OriginOf(const Variables& variables) {
  int64_t job = NumberOf(variables.Get("CI_PROJECT_ID"));
  int64_t target = NumberOf(variables.Get("CI_MERGE_REQUEST_PROJECT_ID"));
  int64_t source = NumberOf(variables.Get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID"));
  if (job == 0 || target == 0 || source == 0) return HeadOrigin::kUnknown;
  if (source != target) return HeadOrigin::kFork;
  return job == target ? HeadOrigin::kBase : HeadOrigin::kUnknown;
}

Status ReadMergeRequest(const Variables& variables, Event& event) {
  event.proposal_number = NumberOf(variables.Get("CI_MERGE_REQUEST_IID"));
  if (event.proposal_number == 0) {
    return Error{Code::kInvalid, "CI_MERGE_REQUEST_IID is not a number: " +
                                     Quoted(variables.Get("CI_MERGE_REQUEST_IID"))};
  }
  event.project_id = NumberOf(variables.Get("CI_MERGE_REQUEST_PROJECT_ID"));
  event.repository = variables.Get("CI_MERGE_REQUEST_PROJECT_PATH");
  event.base_ref = variables.Get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME");
  event.base_sha = variables.Get("CI_MERGE_REQUEST_TARGET_BRANCH_SHA",
                                 variables.Get("CI_MERGE_REQUEST_DIFF_BASE_SHA"));
  event.head_ref = variables.Get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME");
  // In a pipeline of a merged result, CI_COMMIT_SHA is the merge.
  event.merge_sha = variables.Get("CI_COMMIT_SHA");
  event.head_sha =
      variables.Get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", variables.Get("CI_COMMIT_SHA"));
  event.head_repository = variables.Get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH");
  event.head_origin = OriginOf(variables);
  if (event.base_ref.empty()) {
    return Error{Code::kInvalid, "a merge request without CI_MERGE_REQUEST_TARGET_BRANCH_NAME"};
  }
  event.trusted_ref = kBaseRef;
  std::string url = variables.Get("CI_MERGE_REQUEST_PROJECT_URL");
  bool elsewhere = event.head_origin != HeadOrigin::kBase && IsHttpUrl(url);
  event.trusted_fetch = FetchBaseCommand(elsewhere ? url + ".git" : "origin", event.base_ref);
  return Ok();
}

void ReadOwnRef(const Variables& variables, Event& event) {
  const std::string branch = variables.Get("CI_COMMIT_BRANCH");
  const std::string sha = variables.Get("CI_COMMIT_SHA");
  const std::string before = variables.Get("CI_COMMIT_BEFORE_SHA");
  const std::string main = variables.Get("CI_DEFAULT_BRANCH");
  event.base_ref = branch;
  event.base_sha = event.kind != EventKind::kPush ? sha : IsZeroSha(before) ? "" : before;
  event.head_ref = branch;
  event.head_sha = sha;
  event.head_repository = event.repository;
  bool named = !branch.empty() || !variables.Get("CI_COMMIT_TAG").empty();
  bool known = std::find(kOwnSources.begin(), kOwnSources.end(), event.name) != kOwnSources.end();
  if (!named || !known) {
    event.head_origin = HeadOrigin::kUnknown;
    return;
  }
  if (variables.True("CI_COMMIT_REF_PROTECTED") || (!main.empty() && branch == main)) {
    event.trusted_sha = sha;
  } else if (!main.empty()) {
    event.trusted_ref = kBaseRef;
    event.trusted_fetch = FetchBaseCommand("origin", main);
  }
}

Status Check(const Event& event, const std::string& main) {
  if (!ValidProject(event.repository)) {
    return Error{Code::kInvalid, "invalid project: " + Quoted(event.repository)};
  }
  // The head's may be deleted, or hidden.
  if (!event.head_repository.empty() && !ValidProject(event.head_repository)) {
    return Error{Code::kInvalid, "invalid head project: " + Quoted(event.head_repository)};
  }
  if (!event.actor.empty() && !IsLogin(event.actor)) {
    return Error{Code::kInvalid, "GITLAB_USER_LOGIN: " + Quoted(event.actor)};
  }
  for (const std::string& url : {event.api_url, event.server_url}) {
    if (!IsHttpUrl(url)) return Error{Code::kInvalid, "not an HTTP URL: " + Quoted(url)};
  }
  TRY(CheckSha("base", event.base_sha));
  TRY(CheckSha("CI_COMMIT_SHA", event.head_sha));
  TRY(CheckSha("CI_COMMIT_SHA", event.merge_sha));
  TRY(CheckRef("base", event.base_ref));
  TRY(CheckRef("CI_DEFAULT_BRANCH", main));
  return CheckRef("head", event.head_ref);
}

}  // namespace

Result<Event> ReadGitLabEvent(const Variables& variables) {
  for (const char* name : {"CI_API_V4_URL", "CI_COMMIT_SHA", "CI_PIPELINE_SOURCE", "CI_PROJECT_ID",
                           "CI_PROJECT_PATH", "CI_SERVER_URL"}) {
    if (variables.Get(name).empty()) {
      return Error{Code::kSetup, "GITLAB_CI is set, but " + std::string(name) + " is not"};
    }
  }
  Event event;
  event.forge = ForgeKind::kGitLab;
  event.name = variables.Get("CI_PIPELINE_SOURCE");
  // A child pipeline of a merge request's has another source, and the same variables.
  bool about_merge_request =
      event.name == "merge_request_event" ||
      std::any_of(kMergeRequestVariables.begin(), kMergeRequestVariables.end(),
                  [&](const char* name) { return variables.Has(name); });
  event.kind = KindOf(event.name, about_merge_request);
  event.repository = variables.Get("CI_PROJECT_PATH");
  event.project_id = NumberOf(variables.Get("CI_PROJECT_ID"));
  event.actor = variables.Get("GITLAB_USER_LOGIN");
  event.api_url = WithoutSlash(variables.Get("CI_API_V4_URL"));
  event.server_url = WithoutSlash(variables.Get("CI_SERVER_URL"));
  event.workflow = variables.Get("CI_CONFIG_PATH", ".gitlab-ci.yml");
  event.job = variables.Get("CI_JOB_NAME");
  if (about_merge_request) {
    TRY(ReadMergeRequest(variables, event));
  } else {
    ReadOwnRef(variables, event);
  }
  TRY(Check(event, variables.Get("CI_DEFAULT_BRANCH")));
  std::string page = variables.Get("CI_PIPELINE_URL");
  if (IsHttpUrl(page)) event.run_url = page;
  return event;
}

EventText ReadGitLabText(const EnvironmentReader& environment) {
  auto get = [&](const char* name) { return environment(name).value_or(""); };
  EventText text;
  std::string number = get("CI_MERGE_REQUEST_IID");
  std::from_chars(number.data(), number.data() + number.size(), text.number);
  text.title = get("CI_MERGE_REQUEST_TITLE");
  text.body = get("CI_MERGE_REQUEST_DESCRIPTION");
  std::string labels = get("CI_MERGE_REQUEST_LABELS");
  for (size_t from = 0; from < labels.size() && text.labels.size() < kLabelsMax;) {
    size_t end = std::min(labels.find(',', from), labels.size());
    if (end > from) text.labels.push_back(labels.substr(from, end - from));
    from = end + 1;
  }
  return text;
}

}  // namespace forge
