// SPDX-License-Identifier: Apache-2.0
// The branches of one repository and what their commits hold, read and added to through the forge's
// API: no clone, no git.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"

namespace forge {

struct TreeEntry {
  int mode = 0;  // 0100644, 0100755, 0120000; 040000: a directory; 0160000: a submodule.
  std::string id;
};
// Everything in a tree, directories included, by its path.
using Tree = std::map<std::string, TreeEntry>;

struct CommitRecord {
  std::string sha;
  std::string tree;  // For ReadTree().
  std::string message;
  std::vector<std::string> parents;
};

// One file of a commit to be made.
struct FileWrite {
  std::string path;      // From the repository's top; UTF-8.
  std::string old_id;    // The id of the file that is there; empty if there is none.
  int old_mode = 0;      // The mode of that file.
  bool removed = false;  // If true, the rest has no meaning.
  std::string bytes;
  int mode = 0;  // 0100644, 0100755 or 0120000.
};

struct CommitRequest {
  std::string branch;
  std::string tip;  // The commit that the branch must be at; empty if there must be no such branch.
  CommitRecord on;  // The commit whose tree `files` change.
  bool merges_on = false;  // `on` is not among the ancestors of `tip`, so it is a second parent.
  // A further parent, which `files` have merged; may be empty. A forge whose API makes no merges
  // makes the same commit without it.
  std::string merged = {};
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

inline constexpr size_t kTreeEntriesMax = 100'000;

class Branches {
 public:
  virtual ~Branches() = default;

  // Returns the commit at the end of the branch; nullopt if there is no such branch.
  virtual Result<std::optional<std::string>> ReadTip(const std::string& branch,
                                                     Deadline deadline) = 0;
  // Reads `sha` and its ancestors, newest first, at most `count_max` (100 or less).
  virtual Result<std::vector<CommitRecord>> ReadHistory(const std::string& sha, int count_max,
                                                        Deadline deadline) = 0;
  // Reads the whole tree. Fails with kInvalid if the forge does not give all of it, or it has more
  // than kTreeEntriesMax entries.
  virtual Result<Tree> ReadTree(const std::string& tree, Deadline deadline) = 0;
  // Reads a blob of at most 64 MiB.
  virtual Result<std::string> ReadBlob(const std::string& id, Deadline deadline) = 0;

  // Returns whether the forge vouches for who made the last commit of Commit(): "verified", or its
  // own word for why not ("unsigned"); empty if it does not say.
  virtual std::string verification() const { return ""; }

  // Makes one commit, on top of `on` and of the branch's tip, whose tree is that of `on` with
  // `files`. Never discards another author's commit: if the branch is elsewhere by now, fails with
  // kInvalid and `moved()`. Returns the new commit, or "" in a dry run.
  virtual Result<std::string> Commit(const CommitRequest& request, Deadline deadline) = 0;
  // Returns whether the last Commit() or Open() failed because another post was faster, so that the
  // caller should look again.
  virtual bool moved() const = 0;
  // Returns why this forge's API cannot make such a commit; empty if it can.
  virtual std::string CannotCommit(const CommitRequest& request) const = 0;

  // Returns the pull request between two branches of this repository: the open one, else the
  // latest.
  virtual Result<std::optional<BranchPullRequest>> FindPullRequest(const std::string& head,
                                                                   const std::string& base,
                                                                   Deadline deadline) = 0;
  virtual Result<BranchPullRequest> Open(const PullRequestText& text, Deadline deadline) = 0;
  virtual Status Retell(int64_t number, const PullRequestText& text, Deadline deadline) = 0;
};

}  // namespace forge
