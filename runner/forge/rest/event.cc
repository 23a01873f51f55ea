// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/event.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "codec/data/digest.h"
#include "codec/data/json.h"
#include "forge/event_fields.h"
#include "forge/permission.h"

namespace forge {
namespace {

// The events that are about no commit but GITHUB_SHA. Any other may be about a stranger's.
constexpr std::array<std::string_view, 19> kEventsWithoutHead = {"branch_protection_rule",
                                                                 "create",
                                                                 "delete",
                                                                 "discussion",
                                                                 "discussion_comment",
                                                                 "fork",
                                                                 "gollum",
                                                                 "issue_comment",
                                                                 "issues",
                                                                 "label",
                                                                 "milestone",
                                                                 "page_build",
                                                                 "public",
                                                                 "registry_package",
                                                                 "release",
                                                                 "repository_dispatch",
                                                                 "schedule",
                                                                 "watch",
                                                                 "workflow_dispatch"};

// The events of another workflow's run that leave no doubt where its head is from: of a pull
// request's comment, say, its record has the default branch for a head.
constexpr std::array<std::string_view, 5> kRunEventsWithHead = {
    "merge_group", "pull_request", "push", "schedule", "workflow_dispatch"};

template <typename List>
bool Has(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string BranchOf(std::string_view ref) {
  constexpr std::string_view kHeads = "refs/heads/";
  return ref.substr(0, kHeads.size()) == kHeads ? std::string(ref.substr(kHeads.size())) : "";
}

// Returns "refs/tags/v1" of a tag; empty if it is something else.
std::string TagOf(const std::string& ref) {
  constexpr std::string_view kTags = "refs/tags/";
  const bool tag = ref.starts_with(kTags) && ValidRef(std::string_view(ref).substr(kTags.size()));
  return tag ? ref : "";
}

// A branch or a tag, which take the right to write. GitHub itself pushes the branches of a merge
// queue, which hold the queued pull requests.
bool IsOwnRef(std::string_view ref) {
  constexpr std::string_view kTags = "refs/tags/";
  if (BranchOf(ref).starts_with("gh-readonly-queue/")) return false;
  return !BranchOf(ref).empty() || (ref.starts_with(kTags) && ref.size() > kTags.size());
}

const codec::Json& At(const codec::Json& json, std::string_view name) {
  static const codec::Json kNull;
  const codec::Json* found = json.Find(name);
  return found == nullptr ? kNull : *found;
}

EventKind KindOf(std::string_view name) {
  if (name == "pull_request") return EventKind::kPullRequest;
  if (name == "pull_request_target") return EventKind::kPullRequestTarget;
  if (name == "issue_comment") return EventKind::kIssueComment;
  if (name == "workflow_dispatch") return EventKind::kWorkflowDispatch;
  if (name == "push") return EventKind::kPush;
  return EventKind::kOther;
}

// Compares by id: a name can be given up and taken by another owner. A deleted repository has none.
HeadOrigin OriginOf(const codec::Json& base, const codec::Json& head) {
  int64_t base_id = base.IntegerAt("id");
  int64_t head_id = head.IntegerAt("id");
  if (base_id == 0 || head_id == 0) return HeadOrigin::kUnknown;
  return base_id == head_id ? HeadOrigin::kBase : HeadOrigin::kFork;
}

// Gitea's base.sha is the branch's tip at the event. GitHub's is the tip at the last push to the
// pull request, so its author would decide how old the policy is. GITHUB_SHA is the tip of the
// default branch under pull_request_target, otherwise a merge that GitHub does not keep up to date.
void ReadPullRequestBase(Event& event) {
  if (event.forge == ForgeKind::kGitea) {
    event.trusted_sha = event.base_sha;
    return;
  }
  if (event.kind == EventKind::kPullRequestTarget) return;
  event.trusted_sha.clear();
  if (event.base_ref.empty()) return;
  event.trusted_ref = kBaseRef;
  event.trusted_fetch = FetchBaseCommand(event.server_url + "/" + event.repository, event.base_ref);
}

void ReadPullRequest(const codec::Json& pull, Event& event) {
  const codec::Json& base = At(pull, "base");
  const codec::Json& head = At(pull, "head");
  event.proposal_number = pull.IntegerAt("number");
  event.base_ref = base.StringAt("ref");
  event.base_sha = base.StringAt("sha");
  event.head_ref = head.StringAt("ref");
  event.head_sha = head.StringAt("sha");
  event.head_repository = At(head, "repo").StringAt("full_name");
  event.head_origin = OriginOf(At(base, "repo"), At(head, "repo"));
  if (event.repository.empty()) event.repository = At(base, "repo").StringAt("full_name");
  ReadPullRequestBase(event);
}

void ReadPush(const codec::Json& payload, Event& event) {
  event.base_ref = BranchOf(payload.StringAt("ref"));
  event.base_sha = payload.StringAt("before");
  event.head_ref = event.base_ref;
  event.head_tag = TagOf(payload.StringAt("ref"));
  event.head_sha = payload.StringAt("after");
  event.head_repository = event.repository;
  if (IsZeroSha(event.base_sha)) event.base_sha.clear();
  if (IsZeroSha(event.head_sha)) event.head_sha.clear();
  // Elsewhere than on a branch or a tag, of GitHub's or Gitea's own, is a stranger's commit.
  if (!IsOwnRef(payload.StringAt("ref"))) event.trusted_sha.clear();
  if (event.trusted_sha.empty()) event.head_origin = HeadOrigin::kUnknown;
}

void ReadMergeGroup(const codec::Json& group, Event& event) {
  event.base_ref = BranchOf(group.StringAt("base_ref"));
  event.base_sha = group.StringAt("base_sha");
  event.trusted_sha = event.base_sha;  // GITHUB_SHA holds the queued changes.
  event.head_ref = BranchOf(group.StringAt("head_ref"));
  event.head_sha = group.StringAt("head_sha");
  event.head_repository = event.repository;
}

// The branch that GITHUB_REF names, with GITHUB_SHA: for most events the default one, unless a
// person with write access chose another.
void ReadOwnBranch(const std::string& ref, const std::string& sha, Event& event) {
  event.base_ref = BranchOf(ref);
  event.base_sha = sha;
  event.head_ref = event.base_ref;
  event.head_tag = TagOf(ref);
  event.head_sha = event.base_sha;
  event.head_repository = event.repository;
  if (!Has(kEventsWithoutHead, event.name)) event.head_origin = HeadOrigin::kUnknown;
  if (event.trusted_sha.empty()) event.head_origin = HeadOrigin::kUnknown;
}

void ReadHead(std::string ref, std::string sha, std::string repository, Event& event) {
  event.head_ref = std::move(ref);
  event.head_tag.clear();
  event.head_sha = std::move(sha);
  event.head_repository = std::move(repository);
}

// issue_comment says that its issue is a pull request, and nothing of the pull request's branches.
void ReadCommentedPullRequest(const codec::Json& issue, Event& event) {
  event.proposal_number = issue.IntegerAt("number");
  ReadHead("", "", "", event);
  event.head_origin = HeadOrigin::kUnknown;
}

// The run of another workflow, often of a fork's pull request, whose code or artifacts this one is
// about to take. The run has the rights of the default branch, its head need not have any.
void ReadWorkflowRun(const codec::Json& payload, Event& event) {
  const codec::Json& run = At(payload, "workflow_run");
  const codec::Json& head = At(run, "head_repository");
  ReadHead(run.StringAt("head_branch"), run.StringAt("head_sha"), head.StringAt("full_name"),
           event);
  event.head_origin = OriginOf(At(payload, "repository"), head);
  bool known = Has(kRunEventsWithHead, run.StringAt("event")) && !event.trusted_sha.empty();
  if (event.head_origin == HeadOrigin::kBase && !known) event.head_origin = HeadOrigin::kUnknown;
}

// Events about a commit, which any repository of the network may have: a fork's has a status too.
void ReadAboutCommit(const std::string& sha, Event& event) {
  bool own = !sha.empty() && sha == event.trusted_sha;
  event.head_origin = own ? HeadOrigin::kBase : HeadOrigin::kUnknown;
  if (!own) ReadHead("", sha, "", event);
}

void ReadOther(const codec::Json& payload, Event& event) {
  const codec::Json& issue = At(payload, "issue");
  if (At(issue, "pull_request").object() != nullptr) ReadCommentedPullRequest(issue, event);
  if (event.name == "workflow_run") ReadWorkflowRun(payload, event);
  for (const char* subject : {"check_run", "check_suite"}) {
    if (event.name == subject) ReadAboutCommit(At(payload, subject).StringAt("head_sha"), event);
  }
  if (event.name == "status") ReadAboutCommit(payload.StringAt("sha"), event);
  if (event.name == "deployment" || event.name == "deployment_status") {
    ReadAboutCommit(At(payload, "deployment").StringAt("sha"), event);
  }
}

Status Check(const Event& event) {
  if (!ValidRepository(event.repository)) {
    return Error{Code::kInvalid, "invalid repository: " + Quoted(event.repository)};
  }
  if (!event.head_repository.empty() && !ValidRepository(event.head_repository)) {
    return Error{Code::kInvalid, "invalid head repository: " + Quoted(event.head_repository)};
  }
  if (event.proposal_number < 0) return Error{Code::kInvalid, "negative pull request number"};
  if (!event.actor.empty() && !IsLogin(event.actor)) {
    return Error{Code::kInvalid, "actor: " + Quoted(event.actor)};
  }
  for (const std::string& url : {event.api_url, event.server_url}) {
    if (!IsHttpUrl(url)) return Error{Code::kInvalid, "not an HTTP URL: " + Quoted(url)};
  }
  TRY(CheckSha("base", event.base_sha));
  TRY(CheckSha("merge", event.merge_sha));
  TRY(CheckSha("head", event.head_sha));
  TRY(CheckSha("GITHUB_SHA", event.trusted_sha));
  TRY(CheckRef("base", event.base_ref));
  return CheckRef("head", event.head_ref);
}

// Returns whether `repository`, of the event, is another than the one that the job runs for.
// Compares by id if both are known: a repository can be renamed after its event.
bool IsOther(const codec::Json& repository, const Variables& variables) {
  const int64_t id = repository.IntegerAt("id");
  const std::string own_id = variables.Get("GITHUB_REPOSITORY_ID");
  if (id != 0 && !own_id.empty()) return std::to_string(id) != own_id;
  const std::string name = ascii::LowerCase(repository.StringAt("full_name"));
  const std::string own = ascii::LowerCase(variables.Get("GITHUB_REPOSITORY"));
  return !name.empty() && !own.empty() && name != own;
}

std::string RunUrl(const Variables& variables, const Event& event) {
  // Gitea's pages are numbered per repository, GitHub's by id.
  bool gitea = event.forge == ForgeKind::kGitea;
  std::string id = variables.Get(gitea ? "GITHUB_RUN_NUMBER" : "GITHUB_RUN_ID");
  if (!IsNumber(id)) return "";
  std::string url = event.server_url + "/" + event.repository + "/actions/runs/" + id;
  std::string attempt = variables.Get("GITHUB_RUN_ATTEMPT");
  if (!gitea && IsNumber(attempt)) url += "/attempts/" + attempt;
  return url;
}

// Returns `matrix`, an object in JSON, as a person names a leg: "node: 20, os: linux". Of the
// values of a long one, which may be whole objects, the digest. Empty for anything else.
std::string LegOf(const std::string& matrix) {
  constexpr size_t kLegBytesMax = 200;
  Result<codec::Json> json = codec::ParseJson(matrix);
  if (!json.ok() || json.value().object() == nullptr) return "";
  std::string leg;
  for (const auto& [name, value] : *json.value().object()) {
    const std::string* text = value.string();
    leg += (leg.empty() ? "" : ", ") + name + ": " +
           (text != nullptr ? *text : codec::RenderJsonLine(value));
  }
  return leg.size() <= kLegBytesMax ? leg : codec::Sha256Hex(leg).substr(0, 12);
}

}  // namespace

Result<Event> ParseActionsEvent(const EnvironmentReader& environment, ForgeKind forge,
                                std::string_view payload) {
  Variables variables(environment);
  Event event;
  event.forge = forge;
  codec::JsonBounds bounds;
  bounds.bytes_max = kEventBytesMax;
  codec::Json json = TRY(codec::ParseJson(payload, bounds));
  if (json.object() == nullptr) return Error{Code::kInvalid, "not a JSON object"};

  event.name = variables.Get("GITHUB_EVENT_NAME");
  event.kind = KindOf(event.name);
  event.repository =
      variables.Get("GITHUB_REPOSITORY", At(json, "repository").StringAt("full_name"));
  event.actor = variables.Get("GITHUB_TRIGGERING_ACTOR", variables.Get("GITHUB_ACTOR"));
  event.api_url = WithoutSlash(variables.Get("GITHUB_API_URL", "https://api.github.com"));
  event.server_url = WithoutSlash(variables.Get("GITHUB_SERVER_URL", "https://github.com"));
  event.step_summary_path = variables.Get("GITHUB_STEP_SUMMARY");
  event.output_path = variables.Get("GITHUB_OUTPUT");
  event.workflow = variables.Get("GITHUB_WORKFLOW");
  event.job = variables.Get("GITHUB_JOB");
  event.matrix_job = variables.Get("AGENTIC_CI_MATRIX_JOB");
  event.leg = LegOf(variables.Get("AGENTIC_CI_MATRIX"));

  std::string ref = variables.Get("GITHUB_REF");
  std::string sha = variables.Get("GITHUB_SHA");
  if (IsOwnRef(ref)) event.trusted_sha = sha;
  if (ref.starts_with("refs/pull/")) event.merge_sha = sha;

  bool about_pull_request =
      event.kind == EventKind::kPullRequest || event.kind == EventKind::kPullRequestTarget;
  if (At(json, "pull_request").object() != nullptr) {
    ReadPullRequest(At(json, "pull_request"), event);
  } else if (about_pull_request) {
    return Error{Code::kInvalid, "a " + event.name + " event without a pull request"};
  } else if (event.kind == EventKind::kPush) {
    ReadPush(json, event);
  } else if (At(json, "merge_group").object() != nullptr) {
    ReadMergeGroup(At(json, "merge_group"), event);
  } else {
    ReadOwnBranch(ref, sha, event);
    ReadOther(json, event);
  }
  const codec::Json& base = At(At(json, "pull_request"), "base");
  if (IsOther(At(json, "repository"), variables) || IsOther(At(base, "repo"), variables)) {
    event.head_origin = HeadOrigin::kUnknown;
    event.trusted_sha.clear();
    event.trusted_ref.clear();
  }
  if (about_pull_request && event.proposal_number == 0) {
    return Error{Code::kInvalid, "the pull request has no number"};
  }
  TRY(Check(event));
  event.actors = ReadActors(environment, json);
  event.run_url = RunUrl(variables, event);
  return event;
}

}  // namespace forge
