// SPDX-License-Identifier: Apache-2.0
// The event that started this job, as described by the CI system.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

// Each but kNone has a row in forge/open/open.cc; kCount is not one.
enum class ForgeKind { kNone, kGitHub, kGitea, kGitLab, kCount };

// The event that started the workflow. kNone means that no event was read, kOther an event without
// a meaning of its own here (schedule, workflow_run, pull_request_review, ...), which may carry a
// proposal anyway.
enum class EventKind {
  kNone,
  kPullRequest,
  kPullRequestTarget,
  kIssueComment,
  kWorkflowDispatch,
  kPush,
  kOther,
};

// The origin of the code that the workflow may have checked out. kUnknown means that the event does
// not say, or is another repository's; it is judged like a fork.
enum class HeadOrigin { kBase, kFork, kUnknown };

// Every string is empty when the event does not say. All of them were checked: references with
// ValidRef(), hashes as 40 or 64 hex digits, repositories as "owner/name", addresses as http(s)
// without a user or blanks.
struct Event {
  ForgeKind forge = ForgeKind::kNone;
  // The variable that shows another continuous integration, whose events are not read: "CIRCLECI".
  std::string unread_ci;
  EventKind kind = EventKind::kNone;
  std::string name;             // The forge's own word for it: "pull_request".
  std::string repository;       // "owner/name" of the base; on GitLab "group/.../name".
  int64_t project_id = 0;       // On GitLab: the base's number; 0 elsewhere.
  int64_t proposal_number = 0;  // 0 for no pull request.
  std::string base_ref;         // "main": never "refs/heads/main".
  std::string base_sha;         // A push's: what was there before; empty for a new branch.
  std::string head_ref;
  std::string head_tag;  // "refs/tags/v1", of GitHub's and Gitea's events about a tag.
  std::string head_sha;
  std::string merge_sha;  // The forge's merge of the two, or the head: GITHUB_SHA of refs/pull/.
  std::string head_repository;  // Empty if it was deleted, or is not in the event.
  HeadOrigin head_origin = HeadOrigin::kBase;
  // A commit that belongs to the base repository, whatever was checked out: the base of a merge
  // group or of a pull request on Gitea, otherwise GITHUB_SHA where GITHUB_REF is a branch or a
  // tag. Empty if the event says that it is another repository's.
  std::string trusted_sha;
  // Set for events that name no such commit (GitLab, and GitHub's pull requests except under
  // pull_request_target): the ref that the job has fetched the base repository's branch to, and the
  // command that fetches it.
  std::string trusted_ref;
  std::string trusted_fetch;
  // The user who triggered this attempt (GITHUB_TRIGGERING_ACTOR, else GITHUB_ACTOR).
  std::string actor;
  std::vector<std::string> actors;  // ReadActors(): `actor` and everyone else with a part in it.
  std::string api_url;              // Without a slash at the end.
  std::string server_url;           // Without a slash at the end.
  std::string run_url;              // The page of this workflow run.
  std::string step_summary_path;    // GITHUB_STEP_SUMMARY: a file to append Markdown to.
  std::string output_path;          // GITHUB_OUTPUT: a file to append `name=value` to.
  std::string workflow;             // GITHUB_WORKFLOW, any characters.
  std::string job;                  // GITHUB_JOB.
  std::string matrix_job;           // AGENTIC_CI_MATRIX_JOB: the job's number in a matrix.
  // The values of AGENTIC_CI_MATRIX, an object in JSON: "node: 20, os: linux". Empty outside of a
  // matrix, any characters.
  std::string leg;

  // Returns what tells the results for one commit apart: "workflow/job", in a matrix with the leg
  // or the job's number behind it, since its jobs have one name, and with ":task" for a task of the
  // configuration. "/" without a workflow.
  std::string JobKey(std::string_view task) const;
};

// Gives an environment variable, as sys::Environment does.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string&)>;

// Returns whether `ref` is a branch name: codec::ValidRefName(), and short enough for a branch.
bool ValidRef(std::string_view ref);

// True for "owner/name", both of [A-Za-z0-9._-], neither "." nor "..", at most 100 characters each.
bool ValidRepository(std::string_view repository);

// True for the path of a GitLab project: "group/name" below up to twenty groups, each part of
// [A-Za-z0-9._-].
bool ValidProject(std::string_view path);

}  // namespace forge
