// SPDX-License-Identifier: Apache-2.0
// The checkout's git repository, through libgit2: open it once, then ask for commits, files at a
// ref, differences and refs.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "change/rules/conversion.h"

namespace change {

// The changes of a proposal, by commits alone: not what lies in the working tree.
struct Proposal {
  std::vector<std::string> paths;  // Relative to the top, sorted.
  std::string patch;       // For people: `diff --git` sections, text whatever attributes say.
  size_t patch_bytes = 0;  // The size of the whole; `patch` may hold less.
};

// The facts of a pull request that would be opened from the checkout's branch. A member is empty if
// git does not have it.
struct HeadFacts {
  std::string branch;       // HEAD's; empty if HEAD is detached.
  std::string commit;       // HEAD's, 40 hexadecimal digits.
  std::string base_branch;  // The default branch of the remote `origin`, or else main or master.
  std::string base;         // The full name of that branch's ref: at the origin, or else here.
  std::string title;        // The summary of HEAD's message,
  std::string body;         // and what follows it. Bytes of any length, as they are.
};

// The settings besides a checkout's own files that decide how git converts them.
struct ConversionFacts {
  AutoCrlf auto_crlf = AutoCrlf::kNo;
  bool native_crlf = false;       // core.eol is crlf.
  std::set<std::string> drivers;  // The names in filter.NAME.clean and filter.NAME.process.
  std::string attributes;         // The text of info/attributes.
};

// The git repository of a checkout, read only: its objects, references, index and ignore rules.
//
// Hermetic: no system, global or XDG configuration is read; nothing in the repository's own
// configuration can start a program, since libgit2 runs no hook, filter driver, credential helper
// or fsmonitor. That configuration is read once, in Open(), for the origin's address and how files
// are converted, and then replaced with an empty one, so `core.worktree` and `core.excludesFile`
// have no effect afterwards. What an `include.path` there names is parsed as configuration during
// Open() and goes no further.
class Repository {
 public:
  // Opens the repository of `checkout`, a directory of a working tree: its top is the nearest
  // directory, itself or above, with a `.git` (a directory or a gitfile). Fails with kNotFound if
  // there is no such directory; with kSetup if git's own files come first (a bare repository, or
  // the inside of a `.git`) or if the `.git` above belongs to another user; with kInvalid if it
  // cannot be read as a repository.
  static Result<Repository> Open(const std::string& checkout);
  Repository(Repository&&) noexcept;
  Repository& operator=(Repository&&) noexcept;
  ~Repository();

  // Returns the top directory of the working tree, canonical.
  const std::string& top() const;
  // Returns the path from there to the checkout, with a `/` at the end; empty if the checkout is
  // the top.
  const std::string& prefix() const;

  // True if HEAD names a branch that has no commit yet.
  bool unborn() const;

  // Returns the commit, as 40 hexadecimal digits, that `ref` names: HEAD, a full commit id, a full
  // name (refs/...), or a short name looked up as refs/heads/, refs/remotes/origin/, refs/remotes/
  // and refs/tags/, first match. Fails with kInvalid for a name codec::ValidRefName() refuses, with
  // kNotFound and a hint to fetch if nothing has that name.
  Result<std::string> ResolveCommit(const std::string& ref) const;

  // Returns the parents that the commit itself names, also those that a shallow checkout lacks.
  // Fails as ResolveCommit() does.
  Result<std::vector<std::string>> ParentsOf(const std::string& ref) const;

  // Reads the file `path` (relative to the top, `/` between components) in the tree of `ref`.
  // Returns nullopt if that tree has no such file. Every other reason not to have its bytes is an
  // Error, so that a policy which could not be read never passes for one that is not there. Fails
  // with kNotFound for a missing ref or a missing object (shallow or partial clone, with a hint),
  // with kInvalid for a symbolic link or a submodule at or above `path`, for a directory, and for
  // more than `bytes_max` bytes.
  Result<std::optional<std::string>> ReadAtRef(const std::string& ref, const std::string& path,
                                               size_t bytes_max) const;

  // Returns the names in `directory` (a path as ReadAtRef()'s, or empty for the top) in the tree of
  // `ref`, in git's order. Empty if there is no such directory. Fails as ReadAtRef() does.
  Result<std::vector<std::string>> NamesAtRef(const std::string& ref,
                                              const std::string& directory) const;

  // Reads what the commit in HEAD changes since `base`: since their merge base, or where the
  // history does not reach that far, since `base` itself. `patch` has at most `patch_bytes_max`
  // bytes and no content of binary files or of files over 1 MiB; if that is 0, it is not made at
  // all. Fails as ResolveCommit() does, and with kInvalid for more than 100000 changed files.
  //
  // With `withheld`, the tracked files count as they are on the disk, committed or not; on a branch
  // without a commit, all of them. That is the set of paths, relative to the top, of which no
  // content is shown.
  Result<Proposal> ReadProposal(const std::string& base, size_t patch_bytes_max,
                                const std::set<std::string>* withheld = nullptr) const;

  // Describes HEAD. Empty for a branch without a commit. Fails with kInvalid where the commit or a
  // ref cannot be read.
  Result<HeadFacts> DescribeHead() const;

  // Returns the text of the symbolic link `path` at `ref`; nullopt for anything else there. `path`
  // is as in ReadAtRef(), and so are the errors.
  Result<std::optional<std::string>> ReadLinkAtRef(const std::string& ref,
                                                   const std::string& path) const;

  struct GitFile {
    int mode = 0;
    std::string blob;  // 40 hexadecimal digits.
  };
  // Returns the file or the symbolic link `path` at `ref`; nullopt for anything else there. `path`
  // is as in ReadAtRef(), and so are the errors.
  Result<std::optional<GitFile>> FileAtRef(const std::string& ref, const std::string& path) const;

  // Returns whether the commit `id` (40 hexadecimal digits) is that of `ref` or in its history, as
  // far as that is here.
  bool HasInHistory(const std::string& ref, const std::string& id) const;

  // Returns the git tree, as 40 hexadecimal digits, that `patch` makes of the commit `ref`; the
  // paths of the patch begin at `below`, "" or "directory/" from the top. Nothing is written to the
  // repository. Fails as ResolveCommit() and PlanEdit() do.
  Result<std::string> TreeWith(const std::string& ref, const std::string& below,
                               const std::string& patch) const;
  // Returns whether the working tree has exactly the files of HEAD, what is ignored aside. Filters
  // that convert files are not run: where there are any, it may be said not to be.
  Result<bool> IsClean() const;

  struct CommitFacts {
    std::string id;  // These are 40 hexadecimal digits each.
    std::string tree;
    std::vector<std::string> parents;
    std::string message;
  };
  // Fails as ResolveCommit() does.
  Result<CommitFacts> DescribeCommit(const std::string& ref) const;
  // Returns the commits that `head` has and `base` does not, newest first. Fails as ResolveCommit()
  // does, with kInvalid for more than `count_max`, and with kNotFound where the history ends before
  // both meet, as in a shallow checkout.
  Result<std::vector<CommitFacts>> CommitsSince(const std::string& base, const std::string& head,
                                                size_t count_max) const;

  // Returns every path that differs between the trees of `ref` and of the commit in HEAD, sorted.
  // Fails as ReadProposal() does.
  Result<std::vector<std::string>> DifferingPaths(const std::string& ref) const;

  // Returns the text of info/exclude.
  std::string ExcludeRules() const;
  // Returns the text of the .gitignore in `directory`, relative to the top and with a `/` at its
  // end
  // ("" is the top), as it lies on disk; nullopt if there is no plain file of at most
  // kIgnoreBytesMax.
  std::optional<std::string> IgnoreFileIn(const std::string& directory) const;
  // Return whether the checkout's index has exactly `path`, and whether it has anything beneath
  // `directory` (without a trailing `/`). The index is loaded by the first call: O(tracked files),
  // once. Where libgit2 cannot read it (a split or a sparse one), all that asks of the index asks
  // of HEAD.
  bool Tracks(const std::string& path) const;
  bool TracksBeneath(const std::string& directory) const;
  // Returns the blob that the index has at `path`, as 40 hexadecimal digits, if the index says that
  // the file, of which `file` are the facts, has not changed since; nullopt where it has or may
  // have.
  std::optional<std::string> CleanBlob(const std::string& path, const struct stat& file) const;
  // Returns the blob that the checkout's index has at `path`, as 40 hexadecimal digits; and its
  // bytes, where they are here.
  std::optional<std::string> TrackedId(const std::string& path) const;
  std::optional<std::string> TrackedBlob(const std::string& path) const;
  // Returns the file at `path` that the index has and a sparse checkout leaves out of the working
  // tree; nullopt for everything else. Fails with kNotFound if its blob is not here.
  Result<std::optional<GitFile>> SparseFileAt(const std::string& path) const;
  // Returns the paths, relative to the top, of all symbolic links in the index. Fails with kInvalid
  // where neither it nor HEAD can be read.
  Result<std::vector<std::string>> TrackedLinks() const;
  // Returns whether the index has a submodule at `path`.
  bool TracksSubmodule(const std::string& path) const;

  // Returns the settings of the repository's own configuration; that of the user and of the system
  // is not read.
  const ConversionFacts& conversion_facts() const;

  // Returns `remote.origin.url` without user name and password; empty if there is none.
  std::string OriginUrl() const;

 private:
  struct State;
  explicit Repository(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace change
