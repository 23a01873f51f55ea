// SPDX-License-Identifier: Apache-2.0
#include "forge/rest/branches.h"

#include <utility>

#include "forge/objects.h"
#include "forge/rest/comments.h"

namespace forge {
namespace {

const codec::Json& MemberAt(const codec::Json& json, std::string_view name) {
  static const codec::Json kNull;
  const codec::Json* found = json.Find(name);
  return found == nullptr ? kNull : *found;
}

Result<CommitRecord> ReadCommit(const codec::Json& json) {
  CommitRecord record;
  record.sha = json.StringAt("sha");
  const codec::Json& commit = MemberAt(json, "commit");
  record.message = commit.StringAt("message");
  record.tree = MemberAt(commit, "tree").StringAt("sha");
  const codec::Json& parents = MemberAt(json, "parents");
  if (parents.array() != nullptr) {
    for (const codec::Json& parent : *parents.array()) {
      record.parents.push_back(parent.StringAt("sha"));
    }
  }
  if (record.sha.empty() || record.tree.empty()) {
    return Error{Code::kTemporary, "the forge's response is not a commit"};
  }
  return record;
}

}  // namespace

RestBranches::RestBranches(Client& client, const std::string& repository)
    : client_(client),
      owner_(repository.substr(0, repository.find('/'))),
      repository_(ApiPath::Repository(repository)) {}

Error RestBranches::Moved(Error error) {
  moved_ = client_.status() == 409 || client_.status() == 422 || client_.may_have_arrived();
  return error;
}

Result<std::vector<CommitRecord>> RestBranches::ReadHistory(const std::string& sha, int count_max,
                                                            Deadline deadline) {
  codec::Json json =
      TRY(client_.Get(HistoryOf((repository_ / "commits").Query("sha", sha), count_max),
                      kContentsPermission, deadline));
  if (json.array() == nullptr) {
    return Error{Code::kTemporary, "the forge's response is not a list of commits"};
  }
  std::vector<CommitRecord> history;
  for (const codec::Json& commit : *json.array()) history.push_back(TRY(ReadCommit(commit)));
  if (history.empty() || history.front().sha != sha) {
    return Error{Code::kTemporary, "the forge's response is not the history of " + sha};
  }
  return history;
}

Result<Tree> RestBranches::ReadTree(const std::string& tree, Deadline deadline) {
  return ReadEntries((repository_ / "git" / "trees" / tree).Query("recursive", 1), deadline);
}

Result<Tree> RestBranches::ReadEntries(const ApiPath& tree, Deadline deadline) {
  Tree whole;
  for (int page = 1;; ++page) {
    codec::Json json = TRY(client_.Get(PageOf(tree, page), kContentsPermission, deadline));
    const codec::Json* entries = json.Find("tree");
    if (entries == nullptr || entries->array() == nullptr) {
      return Error{Code::kTemporary, "the forge's response is not a tree"};
    }
    for (const codec::Json& entry : *entries->array()) {
      whole[entry.StringAt("path")] = {ParseMode(entry.StringAt("mode")), entry.StringAt("sha")};
    }
    const bool more = json.BooleanAt("truncated");
    const bool stuck = more && (!has_pages() || entries->array()->empty());
    if (stuck || whole.size() > kTreeEntriesMax) {
      return Error{Code::kInvalid, "the commit has too many files for the forge to list"};
    }
    if (!more) return whole;
  }
}

Result<std::string> RestBranches::ReadBlob(const std::string& id, Deadline deadline) {
  codec::Json json =
      TRY(client_.Get(repository_ / "git" / "blobs" / id, kContentsPermission, deadline));
  return ReadBlobContent(json);
}

Result<BranchPullRequest> RestBranches::ReadOpen(const codec::Json& json) {
  BranchPullRequest open{json.IntegerAt("number"), ShownUrl(json.StringAt("html_url")),
                         json.StringAt("title"), json.StringAt("body"),
                         json.StringAt("state") == "open"};
  if (open.number <= 0) {
    return Error{Code::kTemporary, "the forge's response is not a pull request"};
  }
  return open;
}

Result<BranchPullRequest> RestBranches::Open(const PullRequestText& text, Deadline deadline) {
  moved_ = false;
  WriteRequest request{"POST", repository_ / "pulls", {}, false, kPullsPermission};
  request.body.Set("title", text.title)
      .Set("head", text.head)
      .Set("base", text.base)
      .Set("body", text.body);
  Result<std::optional<codec::Json>> made = client_.Write(request, deadline);
  if (!made.ok()) return Moved(std::move(made).error());
  std::optional<codec::Json> json = std::move(made).value();
  return json ? ReadOpen(*json) : BranchPullRequest();
}

Status RestBranches::Retell(int64_t number, const PullRequestText& text, Deadline deadline) {
  WriteRequest request{"PATCH", repository_ / "pulls" / number, {}, true, kPullsPermission};
  request.body.Set("title", text.title).Set("body", text.body);
  TRY(client_.Write(request, deadline));
  return Ok();
}

}  // namespace forge
