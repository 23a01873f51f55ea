// SPDX-License-Identifier: Apache-2.0
// The branches of one repository and what their commits hold, read and added to through the forge's
// API: no clone, no git.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "forge/client.h"
#include "forge/gitlab_notes.h"

namespace forge {

// What writing to a branch takes of a workflow's token.
inline constexpr char kContentsPermission[] = "permissions: { contents: write }";

struct TreeEntry {
  int mode = 0;  // 0100644, 0100755, 0120000; 040000: a directory; 0160000: a submodule.
  std::string id;
};
using Directory = std::map<std::string, TreeEntry>;

struct CommitRecord {
  std::string sha;
  std::string tree;  // For ReadDirectory(), as is the `id` of a directory in it.
  std::string message;
  std::vector<std::string> parents;
};

// One file of a commit to be made.
struct FileWrite {
  std::string path;      // From the repository's top; UTF-8.
  std::string old_id;    // Of the file that is there; empty: none is.
  int old_mode = 0;      // Likewise.
  bool removed = false;  // Then the rest says nothing.
  std::string bytes;
  int mode = 0;  // 0100644, 0100755 or 0120000.
};

struct CommitRequest {
  std::string branch;
  std::string tip;         // What the branch must be at; empty: there must be no such branch.
  CommitRecord on;         // Whose tree `files` change.
  bool merges_on = false;  // `on` is not among the ancestors of `tip`, so it is a second parent.
  std::string message;
  std::vector<FileWrite> files;
};

struct PullRequestText {
  std::string head;  // A branch of the same repository.
  std::string base;
  std::string title;
  std::string body;
};

struct BranchPullRequest {
  int64_t number = 0;
  std::string url;  // For people.
  std::string title;
  std::string body;
  bool open = true;
};

// Whether a forge passes on git's words for a push that lost against another.
inline bool LostPush(const Error& error) {
  return error.what.find("cannot lock ref") != std::string::npos;
}

class Branches {
 public:
  virtual ~Branches() = default;

  // The commit at the end of the branch; nothing where there is no such branch.
  virtual Result<std::optional<std::string>> ReadTip(const std::string& branch,
                                                     Deadline deadline) = 0;
  // `sha` and its ancestors, newest first, at most `count_max` (100 or less).
  virtual Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                        Deadline deadline) = 0;
  // One directory, not those beneath it. kInvalid where the forge does not give all of it.
  virtual Result<Directory> ReadDirectory(const std::string& tree, Deadline deadline) = 0;
  // At most 64 MiB.
  virtual Result<std::string> ReadBlob(const std::string& id, Deadline deadline) = 0;

  // Makes one commit, on top of `on` and of the branch's tip, whose tree is that of `on` with
  // `files`. Never discards another author's commit: where the branch is elsewhere by
  // now, kInvalid and `moved()`. Gives the new commit, or "" in a dry run.
  virtual Result<std::string> Commit(const CommitRequest& request, Deadline deadline) = 0;
  // Of the last Commit() or Open() that failed: another post was faster, so look again.
  virtual bool moved() const = 0;
  // Why this forge's API cannot make such a commit; empty: it can.
  virtual std::string CannotCommit(const CommitRequest& request) const = 0;

  // The pull request between two branches of this repository: the open one, else the latest.
  virtual Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                                   const std::string& base,
                                                                   Deadline deadline) = 0;
  virtual Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) = 0;
  virtual Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) = 0;
};

// "100755"; 0 where it is not a mode.
int ParseMode(const std::string& text);
// The tip in a forge's response about a branch, where `member` has it as `name`; nothing where
// there is no such branch.
Result<std::optional<std::string>> ReadTipOf(Result<codec::Json> branch, std::string_view member,
                                             std::string_view name);
// Of a forge's response; at most 64 MiB.
Result<std::string> ReadBlobContent(const codec::Json& json);

// What GitHub and Gitea have in common.
class RestBranches : public Branches {
 public:
  RestBranches(Client& client, const std::string& repository);

  Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                Deadline deadline) override;
  Result<Directory> ReadDirectory(const std::string& tree, Deadline deadline) override;
  Result<std::string> ReadBlob(const std::string& id, Deadline deadline) override;
  bool moved() const override { return moved_; }
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;
  Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) override;

 protected:
  // Whether the last failure says that the branch, or the pull request, is not as it was.
  Error Moved(Error error);
  static Result<BranchPullRequest> ReadOpen(const codec::Json& json);
  // The rest of the queries for a history, and for the `page`-th part of a directory.
  virtual std::string HistoryQuery(const std::string& count) const = 0;
  virtual std::string DirectoryQuery(int page) const = 0;

  Client& client_;
  std::string owner_;
  std::string repository_;  // "/repos/OWNER/NAME"
  bool moved_ = false;
};

class GitHubBranches : public RestBranches {
 public:
  using RestBranches::RestBranches;
  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  // Blobs, tree, commit and reference through the Git data API. Neither author nor committer is
  // given, so GitHub signs the commit for the token's application.
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  std::string CannotCommit(const CommitRequest&) const override { return ""; }
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;

 protected:
  std::string HistoryQuery(const std::string& count) const override { return "&per_page=" + count; }
  std::string DirectoryQuery(int) const override { return ""; }

 private:
  Result<codec::Json> RenderTree(const CommitRequest& request, Deadline deadline);
  Status PointBranch(const CommitRequest& request, const std::string& commit, Deadline deadline);
};

// Gitea and Forgejo have no Git data API: the contents API makes the commit, and checks each old
// file by its hash.
class GiteaBranches : public RestBranches {
 public:
  using RestBranches::RestBranches;
  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  std::string CannotCommit(const CommitRequest& request) const override;
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;

 protected:
  std::string HistoryQuery(const std::string& count) const override {
    return "&limit=" + count + "&stat=false&verification=false&files=false";
  }
  std::string DirectoryQuery(int page) const override {
    return "?per_page=1000&page=" + std::to_string(page);
  }

 private:
  Status PlaceBranch(const CommitRequest& request, Deadline deadline);
  Error MovedOrLost(Error error);
};

// One request to GitLab's commits API makes the commit, without `force`. It compares the files that
// are changed or deleted, not the branch, with what they were at the tip: a commit to other files
// that comes between the last look at the branch and the request is kept, beneath ours.
class GitLabBranches : public Branches {
 public:
  GitLabBranches(Client& client, GitLabProject project)
      : client_(client), project_(std::move(project)) {}

  Result<std::optional<std::string>> ReadTip(const std::string& branch, Deadline deadline) override;
  Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                Deadline deadline) override;
  // `tree`: "COMMIT:PATH", since the API knows no tree by its hash.
  Result<Directory> ReadDirectory(const std::string& tree, Deadline deadline) override;
  Result<std::string> ReadBlob(const std::string& id, Deadline deadline) override;
  Result<std::string> Commit(const CommitRequest& request, Deadline deadline) override;
  bool moved() const override { return moved_; }
  // Symbolic links, and a second parent.
  std::string CannotCommit(const CommitRequest& request) const override;
  Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                           const std::string& base,
                                                           Deadline deadline) override;
  // A merge request whose branch GitLab deletes once it is merged.
  Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) override;
  Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) override;

 private:
  Error Moved(Error error);
  Status CheckTip(const CommitRequest& request, Deadline deadline);

  Client& client_;
  GitLabProject project_;
  bool moved_ = false;
};

}  // namespace forge
