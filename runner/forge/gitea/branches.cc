// SPDX-License-Identifier: Apache-2.0
#include "forge/gitea/branches.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "codec/text/base64.h"
#include "forge/objects.h"
#include "forge/rest/comments.h"

namespace forge {
namespace {

constexpr int kDirectoryMode = 0040000;

// Returns whether `file` keeps its mode. The API keeps the mode of a file that is written, and
// gives a new one 0100644.
bool KeepsMode(const FileWrite& file) {
  return file.mode == (file.old_id.empty() ? 0100644 : file.old_mode) && file.mode != 0120000;
}

std::string RefOf(const codec::Json& pull, const char* side) {
  const codec::Json* branch = pull.Find(side);
  return branch == nullptr ? "" : branch->StringAt("ref");
}

int64_t RepositoryOf(const codec::Json& pull, const char* side) {
  const codec::Json* branch = pull.Find(side);
  return branch == nullptr ? 0 : branch->IntegerAt("repo_id");
}

}  // namespace

std::string GiteaBranches::CannotCommit(const CommitRequest& request) const {
  for (const FileWrite& file : request.files) {
    if (file.removed || KeepsMode(file)) continue;
    return "this forge's API can set neither a file's mode nor a symbolic link: " + file.path;
  }
  return "";
}

Result<std::optional<std::string>> GiteaBranches::ReadTip(const std::string& branch,
                                                          Deadline deadline) {
  return ReadTipOf(client_.Get(repository_ / "branches" / branch, kContentsPermission, deadline),
                   "commit", "id");
}

// The contents API takes a branch or a tag that is called like the commit's id for what is meant.
Result<std::optional<std::string>> GiteaBranches::ReadFile(const std::string& path,
                                                           const std::string& commit,
                                                           Deadline deadline) {
  TreeEntry at{kDirectoryMode, commit};
  for (std::string_view rest = path; !rest.empty();) {
    if (at.mode != kDirectoryMode) return std::optional<std::string>();
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const Tree entries = TRY(ReadEntries(repository_ / "git" / "trees" / at.id, deadline));
    const auto entry = entries.find(name);
    if (entry == entries.end()) return std::optional<std::string>();
    at = entry->second;
  }
  const bool file = at.mode == 0100644 || at.mode == 0100755;
  std::string bytes = file ? TRY(ReadBlob(at.id, deadline)) : "";
  if (!file || bytes.size() > kFileBytesMax) {
    return Error{Code::kInvalid, path + " at " + commit + " is not a file of at most 1 MiB"};
  }
  return std::optional(std::move(bytes));
}

// Such a push is 403 here.
Error GiteaBranches::MovedOrLost(Error error) {
  Error told = Moved(std::move(error));
  moved_ |= told.kind == ErrorKind::kPushLost;
  return told;
}

// Brings the branch to the commit that is built on, if it is elsewhere.
Status GiteaBranches::PlaceBranch(const CommitRequest& request, Deadline deadline) {
  if (request.tip == request.on.sha) return Ok();
  if (request.tip.empty()) {
    WriteRequest create{"POST", repository_ / "branches", {}, false, kContentsPermission};
    create.body.Set("new_branch_name", request.branch).Set("old_ref_name", request.on.sha);
    Result<std::optional<codec::Json>> made = client_.Write(create, deadline);
    if (!made.ok()) return MovedOrLost(std::move(made).error());
    return Ok();
  }
  // The forge compares and moves in one step.
  WriteRequest reset{
      "PUT", repository_ / "branches" / request.branch, {}, true, kContentsPermission};
  reset.body.Set("new_commit_id", request.on.sha)
      .Set("old_commit_id", request.tip)
      .Set("force", true);
  Result<std::optional<codec::Json>> done = client_.Write(reset, deadline);
  if (!done.ok()) return MovedOrLost(std::move(done).error());
  return Ok();
}

Result<std::string> GiteaBranches::Commit(const CommitRequest& request, Deadline deadline) {
  moved_ = false;
  TRY(PlaceBranch(request, deadline));
  WriteRequest commit{"POST", repository_ / "contents", {}, false, kContentsPermission};
  codec::Json files = codec::Json::EmptyArray();
  for (const FileWrite& file : request.files) {
    codec::Json entry;
    bool fresh = file.old_id.empty();
    entry.Set("operation", file.removed ? "delete"
                           : fresh      ? "create"
                                        : "update")
        .Set("path", file.path);
    if (!file.removed) entry.Set("content", codec::EncodeBase64(file.bytes));
    if (!fresh) entry.Set("sha", file.old_id);
    files.Push(std::move(entry));
  }
  commit.body.Set("branch", request.branch)
      .Set("message", request.message)
      .Set("files", std::move(files));
  Result<std::optional<codec::Json>> made = client_.Write(commit, deadline);
  if (!made.ok()) {
    // 403 is also a push of the forge's own that lost against another; 404, a file that is deleted
    // by now.
    bool raced = client_.status() == 403 || client_.status() == 404;
    Error error = Moved(std::move(made).error());
    moved_ |= raced;
    return error;
  }
  std::optional<codec::Json> json = std::move(made).value();
  if (!json) return std::string();
  const codec::Json* record = json->Find("commit");
  std::string sha = record == nullptr ? "" : record->StringAt("sha");
  if (sha.empty()) return Error{Code::kTemporary, "the forge's response has no commit"};
  return sha;
}

Result<std::optional<BranchPullRequest>> GiteaBranches::FindPullRequest(const std::string& head,
                                                                        const std::string& base,
                                                                        Deadline deadline) {
  Result<codec::Json> json =
      client_.Get(repository_ / "pulls" / base / head, kPullsPermission, deadline);
  if (!json.ok() && json.error().code == Code::kNotFound) return std::optional<BranchPullRequest>();
  codec::Json pull = TRY(std::move(json));
  return std::optional(TRY(ReadOpen(pull)));
}

// The forge looks for an open pull request and makes one in two steps, so two posts at once can
// both make theirs: the first one stays.
Result<BranchPullRequest> GiteaBranches::Open(const PullRequestText& text, Deadline deadline) {
  BranchPullRequest opened = TRY(RestBranches::Open(text, deadline));
  if (client_.dry_run()) return opened;
  codec::Json recent = TRY(client_.Get((repository_ / "pulls")
                                           .Query("state", "open")
                                           .Query("sort", "recentupdate")
                                           .Query("limit", 50),
                                       kPullsPermission, deadline));
  if (recent.array() == nullptr) return opened;
  BranchPullRequest first = opened;
  for (const codec::Json& pull : *recent.array()) {
    if (RefOf(pull, "head") != text.head || RefOf(pull, "base") != text.base) continue;
    if (RepositoryOf(pull, "head") != RepositoryOf(pull, "base"))
      continue;  // A fork's branch of that name.
    BranchPullRequest other = TRY(ReadOpen(pull));
    if (other.number < first.number) first = std::move(other);
  }
  if (first.number == opened.number) return opened;
  WriteRequest close{"PATCH", repository_ / "pulls" / opened.number, {}, true, kPullsPermission};
  close.body.Set("state", "closed");
  TRY(client_.Write(close, deadline));
  return first;
}

}  // namespace forge
