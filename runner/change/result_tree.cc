// SPDX-License-Identifier: Apache-2.0
// The tree that a patch makes of a commit, and the commits of a branch: what is proved about them.
#include <git2/sys/mempack.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>

#include <array>
#include <utility>

#include "change/git_handle.h"
#include "change/repository.h"
#include "change/repository_state.h"
#include "change/tree_edit.h"

namespace change {
namespace {

using GitStatus = std::unique_ptr<git_status_list, FreeWith<git_status_list_free>>;
using GitWalk = std::unique_ptr<git_revwalk, FreeWith<git_revwalk_free>>;

constexpr int kMempackPriority = 999;

std::string Hex(const git_oid* id) {
  std::array<char, GIT_OID_HEXSZ> text;
  git_oid_fmt(text.data(), id);
  return {text.data(), text.size()};
}

Repository::CommitFacts Describe(git_commit* commit) {
  Repository::CommitFacts facts{
      Hex(git_commit_id(commit)), Hex(git_commit_tree_id(commit)), {}, git_commit_message(commit)};
  for (unsigned i = 0; i < git_commit_parentcount(commit); ++i) {
    facts.parents.push_back(Hex(git_commit_parent_id(commit, i)));
  }
  return facts;
}

// Opens the objects of `repository` a second time; what is written through this stays in memory.
Result<GitRepository> OpenForReading(git_repository* repository) {
  const std::string objects = std::string(git_repository_commondir(repository)) + "/objects";
  git_odb* raw_odb = nullptr;
  if (git_odb_open(&raw_odb, objects.c_str()) != 0) {
    return GitError(Code::kIo, "opening the objects");
  }
  GitOdb odb(raw_odb);
  git_odb_backend* memory = nullptr;
  if (git_mempack_new(&memory) != 0 ||
      git_odb_add_backend(raw_odb, memory, kMempackPriority) != 0) {
    return GitError(Code::kBug, "making an object store");
  }
  git_repository* raw = nullptr;
  if (git_repository_wrap_odb(&raw, raw_odb) != 0) {
    return GitError(Code::kBug, "making a repository in memory");
  }
  return GitRepository(raw);
}

Result<OldFile> ReadOld(git_index* index, git_repository* git, const std::string& path) {
  const git_index_entry* entry = git_index_get_bypath(index, path.c_str(), 0);
  if (entry == nullptr) return Error{Code::kNotFound, path + " does not exist"};
  if (entry->mode == GIT_FILEMODE_COMMIT) return OldFile();
  git_blob* raw = nullptr;
  if (git_blob_lookup(&raw, git, &entry->id) != 0) {
    return GitError(Code::kNotFound, "reading " + path);
  }
  const GitBlob blob(raw);
  return OldFile{static_cast<int>(entry->mode),
                 std::string(static_cast<const char*>(git_blob_rawcontent(raw)),
                             static_cast<size_t>(git_blob_rawsize(raw)))};
}

Status Apply(const TreeEdit& edit, const std::string& prefix, git_index* index,
             git_repository* git) {
  for (const std::string& path : edit.removed) {
    if (git_index_remove_bypath(index, (prefix + path).c_str()) != 0) {
      return GitError(Code::kInvalid, "removing " + path);
    }
  }
  for (const auto& [path, file] : edit.written) {
    git_index_entry entry{};
    const std::string whole = prefix + path;
    entry.path = whole.c_str();
    entry.mode = static_cast<uint32_t>(file.mode);
    if (git_blob_create_from_buffer(&entry.id, git, file.bytes.data(), file.bytes.size()) != 0 ||
        git_index_add(index, &entry) != 0) {
      return GitError(Code::kInvalid, "adding " + path);
    }
  }
  return Ok();
}

}  // namespace

Result<bool> Repository::IsClean() const {
  git_status_options options = GIT_STATUS_OPTIONS_INIT;
  options.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED | GIT_STATUS_OPT_EXCLUDE_SUBMODULES;
  git_status_list* raw = nullptr;
  if (git_status_list_new(&raw, state_->git.get(), &options) != 0) {
    return GitError(Code::kIo, "comparing the checkout with its commit");
  }
  const GitStatus status(raw);
  return git_status_list_entrycount(raw) == 0;
}

Result<std::string> Repository::TreeWith(const std::string& ref, const std::string& below,
                                         const std::string& patch) const {
  const GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  if (patch.empty()) return Hex(git_commit_tree_id(commit.get()));
  const GitRepository git = TRY(OpenForReading(state_->git.get()));
  git_tree* raw_tree = nullptr;
  if (git_tree_lookup(&raw_tree, git.get(), git_commit_tree_id(commit.get())) != 0) {
    return GitError(Code::kNotFound, "reading the tree of " + ref);
  }
  const GitTree tree(raw_tree);
  git_index* raw_index = nullptr;
  if (git_index_new(&raw_index) != 0) return GitError(Code::kBug, "making an index");
  const GitIndex index(raw_index);
  if (git_index_read_tree(raw_index, raw_tree) != 0) {
    return GitError(Code::kNotFound, "reading the tree of " + ref);
  }
  const TreeEdit edit = TRY(PlanEdit(
      patch, [&](const std::string& path) { return ReadOld(raw_index, git.get(), below + path); }));
  TRY(Apply(edit, below, raw_index, git.get()));
  git_oid id;
  if (git_index_write_tree_to(&id, raw_index, git.get()) != 0) {
    return GitError(Code::kInvalid, "writing a tree");
  }
  return Hex(&id);
}

Result<Repository::CommitFacts> Repository::DescribeCommit(const std::string& ref) const {
  const GitCommit commit = TRY(FindCommit(state_->git.get(), ref));
  return Describe(commit.get());
}

Result<std::vector<Repository::CommitFacts>> Repository::CommitsSince(const std::string& base,
                                                                      const std::string& head,
                                                                      size_t count_max) const {
  git_repository* git = state_->git.get();
  const GitCommit newest = TRY(FindCommit(git, head));
  const GitCommit oldest = TRY(FindCommit(git, base));
  git_revwalk* raw = nullptr;
  if (git_revwalk_new(&raw, git) != 0) return GitError(Code::kBug, "reading the history");
  const GitWalk walk(raw);
  git_revwalk_sorting(raw, GIT_SORT_TOPOLOGICAL);
  if (git_revwalk_push(raw, git_commit_id(newest.get())) != 0 ||
      git_revwalk_hide(raw, git_commit_id(oldest.get())) != 0) {
    return GitError(Code::kNotFound, "reading the history of " + head);
  }
  std::vector<CommitFacts> commits;
  git_oid id;
  int status = 0;
  while ((status = git_revwalk_next(&id, raw)) == 0) {
    if (commits.size() == count_max) {
      return Error{Code::kInvalid, head + " has more than " + std::to_string(count_max) +
                                       " commits that " + base + " does not have"};
    }
    git_commit* one = nullptr;
    if (git_commit_lookup(&one, git, &id) != 0) {
      return GitError(Code::kNotFound, "reading the history of " + head);
    }
    const GitCommit commit(one);
    commits.push_back(Describe(one));
  }
  if (status != GIT_ITEROVER) {
    Error error = GitError(Code::kNotFound, "reading the history of " + head);
    error.hint = "git fetch --unshallow";
    return error;
  }
  return commits;
}

}  // namespace change
