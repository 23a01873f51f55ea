// SPDX-License-Identifier: Apache-2.0
#include "forge/gitlab/branches.h"

#include <algorithm>
#include <utility>

#include "codec/text/base64.h"
#include "forge/objects.h"

namespace forge {
namespace {

constexpr size_t kMergeRequestsMax = 10'000;  // Between two branches, those of forks included.
constexpr int kExecutableMode = 0100755;
constexpr int kLinkMode = 0120000;

// A path as it is at the branch's tip, and as it shall be.
struct Change {
  int mode_there = 0;  // 0 if nothing is there.
  int mode = 0;        // 0 if nothing shall be there.
  std::string bytes;
};
using Changes = std::map<std::string, Change>;

// Deletions first, since a file may take a directory's place. `tip`: what GitLab compares each file
// with; empty for a new branch. A file that is created has the mode 0100644, and only what it
// updates, not what it changes the mode of, is compared.
codec::Json RenderActions(const Changes& changes, const std::string& tip) {
  codec::Json actions = codec::Json::EmptyArray();
  for (const auto& [path, change] : changes) {
    if (change.mode != 0 || change.mode_there == 0) continue;
    codec::Json action;
    action.Set("action", "delete").Set("file_path", path);
    if (!tip.empty()) action.Set("last_commit_id", tip);
    actions.Push(std::move(action));
  }
  for (const auto& [path, change] : changes) {
    if (change.mode == 0) continue;
    const bool fresh = change.mode_there == 0;
    codec::Json action;
    action.Set("action", fresh ? "create" : "update")
        .Set("file_path", path)
        .Set("content", codec::EncodeBase64(change.bytes))
        .Set("encoding", "base64");
    if (!fresh && !tip.empty()) action.Set("last_commit_id", tip);
    actions.Push(std::move(action));
    const bool executable = change.mode == kExecutableMode;
    if (executable == (change.mode_there == kExecutableMode)) continue;
    codec::Json mode;
    mode.Set("action", "chmod").Set("file_path", path).Set("execute_filemode", executable);
    actions.Push(std::move(mode));
  }
  return actions;
}

Result<CommitRecord> ReadGitLabCommit(const codec::Json& json) {
  CommitRecord record;
  record.sha = json.StringAt("id");
  record.tree = record.sha;
  record.message = json.StringAt("message");
  const codec::Json* parents = json.Find("parent_ids");
  if (record.sha.empty() || parents == nullptr || parents->array() == nullptr) {
    return Error{Code::kTemporary, "the forge's response is not a commit"};
  }
  for (const codec::Json& parent : *parents->array()) {
    if (parent.string() != nullptr) record.parents.push_back(*parent.string());
  }
  return record;
}

Result<BranchPullRequest> ReadMergeRequest(const codec::Json& json) {
  const std::string state = json.StringAt("state");
  BranchPullRequest found{json.IntegerAt("iid"), ShownUrl(json.StringAt("web_url")),
                          json.StringAt("title"), json.StringAt("description"),
                          state == "opened" || state == "locked"};  // Locked: it is being merged.
  if (found.number <= 0) {
    return Error{Code::kTemporary, "the forge's response is not a merge request"};
  }
  return found;
}

// Restores what agentic-ci's earlier commits on the branch changed, and `request` does not.
Status AddUndone(Client& client, const GitLabProject& project, const CommitRequest& request,
                 Changes& changes, Deadline deadline) {
  codec::Json json = TRY(client.Get((project.Path() / "repository" / "compare")
                                        .Query("from", request.on.sha)
                                        .Query("to", request.tip)
                                        .Query("straight", "true"),
                                    kGitLabPermission, deadline));
  const codec::Json* diffs = json.Find("diffs");
  if (diffs == nullptr || diffs->array() == nullptr || json.BooleanAt("compare_timeout")) {
    return Error{Code::kTemporary, "the forge's response does not say what the branch changes"};
  }
  for (const codec::Json& diff : *diffs->array()) {
    const std::string before = diff.StringAt("old_path");
    const std::string after = diff.StringAt("new_path");
    if (!diff.BooleanAt("new_file") && (diff.BooleanAt("deleted_file") || before != after)) {
      auto [change, fresh] = changes.try_emplace(before);
      change->second.mode_there = 0;
      if (fresh) change->second.mode = ParseMode(diff.StringAt("a_mode"));
    }
    if (diff.BooleanAt("deleted_file")) continue;
    auto [change, fresh] = changes.try_emplace(after);
    change->second.mode_there = ParseMode(diff.StringAt("b_mode"));
    bool there_before = !diff.BooleanAt("new_file") && before == after;
    if (fresh && there_before) change->second.mode = ParseMode(diff.StringAt("a_mode"));
  }
  for (auto& changed : changes) {
    auto& [path, change] = changed;
    bool asked = std::any_of(request.files.begin(), request.files.end(),
                             [&](const FileWrite& file) { return file.path == changed.first; });
    if (asked || change.mode == 0) continue;
    codec::Json file = TRY(
        client.Get((project.Path() / "repository" / "files" / path).Query("ref", request.on.sha),
                   kGitLabPermission, deadline));
    change.bytes = TRY(ReadBlobContent(file));
  }
  return Ok();
}

}  // namespace

// GitLab refuses with 400 what does not fit the branch, and with 409 a second merge request.
Error GitLabBranches::Moved(Error error) {
  moved_ = client_.status() == 400 || client_.status() == 409 || client_.may_have_arrived();
  return error;
}

Result<std::optional<std::string>> GitLabBranches::ReadTip(const std::string& branch,
                                                           Deadline deadline) {
  return ReadTipOf(client_.Get(project_.Path() / "repository" / "branches" / branch,
                               kGitLabPermission, deadline),
                   "commit", "id");
}

Result<std::vector<CommitRecord>> GitLabBranches::ReadHistory(const std::string& sha, int count_max,
                                                              Deadline deadline) {
  codec::Json json = TRY(client_.Get((project_.Path() / "repository" / "commits")
                                         .Query("ref_name", sha)
                                         .Query("per_page", count_max),
                                     kGitLabPermission, deadline));
  if (json.array() == nullptr) {
    return Error{Code::kTemporary, "the forge's response is not a list of commits"};
  }
  std::vector<CommitRecord> history;
  for (const codec::Json& commit : *json.array()) history.push_back(TRY(ReadGitLabCommit(commit)));
  if (history.empty() || history.front().sha != sha) {
    return Error{Code::kTemporary, "the forge's response is not the history of " + sha};
  }
  return history;
}

Result<Tree> GitLabBranches::ReadTree(const std::string& tree, Deadline deadline) {
  const ApiPath query =
      (project_.Path() / "repository" / "tree").Query("ref", tree).Query("recursive", "true");
  Tree whole;
  for (const codec::Json& json :
       TRY(client_.GetAll(query, kGitLabPermission, kTreeEntriesMax, deadline))) {
    whole[json.StringAt("path")] = {ParseMode(json.StringAt("mode")), json.StringAt("id")};
  }
  return whole;
}

Result<std::string> GitLabBranches::ReadBlob(const std::string& id, Deadline deadline) {
  return ReadBlobContent(
      TRY(client_.Get(project_.Path() / "repository" / "blobs" / id, kGitLabPermission, deadline)));
}

std::string GitLabBranches::CannotCommit(const CommitRequest& request) const {
  for (const FileWrite& file : request.files) {
    bool link = file.old_mode == kLinkMode || (!file.removed && file.mode == kLinkMode);
    if (link) return "GitLab's API cannot write symbolic links: " + file.path;
  }
  if (!request.tip.empty() && request.merges_on) {
    return "the branch " + request.branch +
           " holds changes for an earlier commit, and GitLab's API cannot merge: delete the "
           "branch, "
           "or give another one";
  }
  return "";
}

Status GitLabBranches::CheckTip(const CommitRequest& request, Deadline deadline) {
  if (TRY(ReadTip(request.branch, deadline)).value_or("") == request.tip) return Ok();
  moved_ = true;
  return Error{Code::kInvalid, "the branch " + request.branch + " has changed in the meantime"};
}

Result<std::string> GitLabBranches::Commit(const CommitRequest& request, Deadline deadline) {
  moved_ = false;
  std::string cannot = CannotCommit(request);
  if (!cannot.empty()) return Error{Code::kRefused, cannot};
  Changes changes;
  for (const FileWrite& file : request.files) {
    changes[file.path] = {file.old_mode, file.removed ? 0 : file.mode, file.bytes};
  }
  if (!request.tip.empty() && request.tip != request.on.sha) {
    TRY(AddUndone(client_, project_, request, changes, deadline));
  }
  codec::Json actions = RenderActions(changes, request.tip);
  if (actions.array()->empty()) return request.tip;  // The branch holds just that.
  if (!request.tip.empty()) TRY(CheckTip(request, deadline));
  WriteRequest commit{
      "POST", project_.Path() / "repository" / "commits", {}, false, kGitLabPermission};
  commit.body.Set("branch", request.branch)
      .Set("commit_message", request.message)
      .Set("actions", std::move(actions));
  if (request.tip.empty()) commit.body.Set("start_sha", request.on.sha);
  Result<std::optional<codec::Json>> made = client_.Write(commit, deadline);
  if (!made.ok()) return Moved(std::move(made).error());
  std::optional<codec::Json> json = std::move(made).value();
  if (!json) return std::string();
  std::string sha = json->StringAt("id");
  if (sha.empty()) return Error{Code::kTemporary, "the forge's response has no commit"};
  return sha;
}

Result<std::optional<BranchPullRequest>> GitLabBranches::FindPullRequest(const std::string& head,
                                                                         const std::string& base,
                                                                         Deadline deadline) {
  std::optional<BranchPullRequest> found;
  for (const codec::Json& json :
       TRY(client_.GetAll((project_.Path() / "merge_requests")
                              .Query("state", "all")
                              .Query("order_by", "created_at")
                              .Query("sort", "desc")
                              .Query("source_branch", head)
                              .Query("target_branch", base),
                          kGitLabPermission, kMergeRequestsMax, deadline))) {
    // A fork may have a branch of the same name.
    const int64_t target = json.IntegerAt("target_project_id");
    if (target <= 0 || json.IntegerAt("source_project_id") != target) continue;
    BranchPullRequest request = TRY(ReadMergeRequest(json));
    if (!found || (request.open && !found->open)) found = std::move(request);
  }
  return found;
}

Result<BranchPullRequest> GitLabBranches::Open(const PullRequestText& text, Deadline deadline) {
  moved_ = false;
  WriteRequest request{"POST", project_.Path() / "merge_requests", {}, false, kGitLabPermission};
  request.body.Set("source_branch", text.head)
      .Set("target_branch", text.base)
      .Set("title", text.title)
      .Set("description", text.body)
      .Set("remove_source_branch", true);
  Result<std::optional<codec::Json>> made = client_.Write(request, deadline);
  if (!made.ok()) return Moved(std::move(made).error());
  std::optional<codec::Json> json = std::move(made).value();
  return json ? ReadMergeRequest(*json) : BranchPullRequest();
}

Status GitLabBranches::Retell(int64_t number, const PullRequestText& text, Deadline deadline) {
  WriteRequest request{
      "PUT", project_.Path() / "merge_requests" / number, {}, true, kGitLabPermission};
  request.body.Set("title", text.title).Set("description", text.body);
  TRY(client_.Write(request, deadline));
  return Ok();
}

}  // namespace forge
