// SPDX-License-Identifier: Apache-2.0
#include "forge/github/branches.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "codec/text/base64.h"
#include "codec/text/utf8.h"
#include "forge/objects.h"
#include "forge/rest/comments.h"

namespace forge {
namespace {

// A file that a JSON string carries as it is; others are blobs of their own.
bool PlainText(const std::string& bytes) {
  return bytes.find('\0') == std::string::npos &&
         codec::FindInvalidUtf8(bytes) == std::string_view::npos;
}

std::string RenderMode(int mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(mode));
  return text;
}

// Creating an object of git twice gives the same one, or one that nothing names.
WriteRequest ObjectRequest(const ApiPath& path) {
  return {"POST", path, {}, true, kContentsPermission};
}

// Returns the id in a response; empty in a dry run.
Result<std::string> ShaOf(Result<std::optional<codec::Json>> response) {
  std::optional<codec::Json> json = TRY(std::move(response));
  if (!json) return std::string();
  std::string sha = json->StringAt("sha");
  if (sha.empty()) return Error{Code::kTemporary, "the forge's response has no object"};
  return sha;
}

// GitHub signs a commit for an application, if no author is named.
std::string VerificationOf(const codec::Json& commit) {
  const codec::Json* verification = commit.Find("verification");
  if (verification == nullptr) return {};
  return verification->BooleanAt("verified") ? "verified" : verification->StringAt("reason");
}

}  // namespace

Result<std::optional<std::string>> GitHubBranches::ReadTip(const std::string& branch,
                                                           Deadline deadline) {
  return ReadTipOf(
      client_.Get(repository_ / "git" / "ref" / ("heads/" + branch), kContentsPermission, deadline),
      "object", "sha");
}

Result<codec::Json> GitHubBranches::RenderTree(const CommitRequest& request, Deadline deadline) {
  codec::Json entries = codec::Json::EmptyArray();
  for (const FileWrite& file : request.files) {
    codec::Json entry;
    entry.Set("path", file.path)
        .Set("mode", RenderMode(file.removed ? file.old_mode : file.mode))
        .Set("type", "blob");
    if (file.removed) {
      entry.Set("sha", codec::Json());
    } else if (PlainText(file.bytes)) {
      entry.Set("content", file.bytes);
    } else {
      WriteRequest blob = ObjectRequest(repository_ / "git" / "blobs");
      blob.body.Set("content", codec::EncodeBase64(file.bytes)).Set("encoding", "base64");
      entry.Set("sha", TRY(ShaOf(client_.Write(blob, deadline))));
    }
    entries.Push(std::move(entry));
  }
  return entries;
}

Result<std::string> GitHubBranches::Commit(const CommitRequest& request, Deadline deadline) {
  moved_ = false;
  WriteRequest tree = ObjectRequest(repository_ / "git" / "trees");
  tree.body.Set("base_tree", request.on.tree).Set("tree", TRY(RenderTree(request, deadline)));
  std::string tree_sha = TRY(ShaOf(client_.Write(tree, deadline)));
  WriteRequest commit = ObjectRequest(repository_ / "git" / "commits");
  std::vector<std::string> parents;
  if (!request.tip.empty()) parents.push_back(request.tip);
  if (request.tip.empty() || request.merges_on) parents.push_back(request.on.sha);
  if (!request.merged.empty()) parents.push_back(request.merged);
  commit.body.Set("message", request.message)
      .Set("tree", tree_sha)
      .Set("parents", codec::Json::FromStrings(parents));
  std::optional<codec::Json> made = TRY(client_.Write(commit, deadline));
  verification_ = made ? VerificationOf(*made) : "";
  std::string sha = TRY(ShaOf(Result<std::optional<codec::Json>>(std::move(made))));
  TRY(PointBranch(request, sha, deadline));
  return sha;
}

// Without force GitHub moves a branch only to a descendant of where it is, and both in one step: a
// commit that came in between is never lost.
Status GitHubBranches::PointBranch(const CommitRequest& request, const std::string& commit,
                                   Deadline deadline) {
  WriteRequest wanted{"POST", repository_ / "git" / "refs", {}, false, kContentsPermission};
  if (request.tip.empty()) {
    wanted.body.Set("ref", "refs/heads/" + request.branch).Set("sha", commit);
  } else {
    wanted = {"PATCH",
              repository_ / "git" / "refs" / ("heads/" + request.branch),
              {},
              true,
              kContentsPermission};
    wanted.body.Set("sha", commit).Set("force", false);
  }
  Result<std::optional<codec::Json>> pointed = client_.Write(wanted, deadline);
  if (!pointed.ok()) return Moved(std::move(pointed).error());
  return Ok();
}

Result<std::optional<BranchPullRequest>> GitHubBranches::FindPullRequest(const std::string& head,
                                                                         const std::string& base,
                                                                         Deadline deadline) {
  codec::Json json = TRY(client_.Get((repository_ / "pulls")
                                         .Query("state", "all")
                                         .Query("head", owner_ + ":" + head)
                                         .Query("base", base),
                                     kPullsPermission, deadline));
  if (json.array() == nullptr) {
    return Error{Code::kTemporary, "the forge's response is not a list of pull requests"};
  }
  std::optional<BranchPullRequest> found;
  for (const codec::Json& entry : *json.array()) {  // The latest first.
    BranchPullRequest pull = TRY(ReadOpen(entry));
    if (!found || (pull.open && !found->open)) found = std::move(pull);
  }
  return found;
}

}  // namespace forge
