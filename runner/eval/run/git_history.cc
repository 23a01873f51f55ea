// SPDX-License-Identifier: Apache-2.0
#include "eval/run/git_history.h"

#include <git2.h>

#include <algorithm>
#include <memory>
#include <set>

#include "codec/glob/glob.h"

namespace eval {
namespace {

constexpr git_time_t kFirstCommit = 1767268800;  // 2026-01-01, noon.
constexpr git_time_t kBetweenCommits = 3600;

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* value) const {
    kFree(value);
  }
};
using Repository = std::unique_ptr<git_repository, Free<git_repository_free>>;
using Index = std::unique_ptr<git_index, Free<git_index_free>>;
using Tree = std::unique_ptr<git_tree, Free<git_tree_free>>;
using Commit = std::unique_ptr<git_commit, Free<git_commit_free>>;
using Signature = std::unique_ptr<git_signature, Free<git_signature_free>>;

Status Done(int status, const char* doing) {
  if (status >= 0) return Ok();
  const git_error* error = git_error_last();
  return Error{Code::kIo,
               std::string(doing) + ": " + (error == nullptr ? "unknown" : error->message)};
}

class History {
 public:
  History(const std::vector<SeedFile>& files) : files_(files) {}

  Status Begin(const std::string& path) {
    git_repository_init_options options;
    git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
    options.initial_head = "main";
    git_repository* repository = nullptr;
    TRY(Done(git_repository_init_ext(&repository, path.c_str(), &options), "git init"));
    repository_.reset(repository);
    git_index* index = nullptr;
    TRY(Done(git_repository_index(&index, repository), "git index"));
    index_.reset(index);
    return Ok();
  }

  Status Add(const SeedCommit& commit) {
    for (const SeedFile& file : files_) {
      if (added_.contains(file.path) || !Takes(commit, file.path)) continue;
      TRY(Done(git_index_add_bypath(index_.get(), file.path.c_str()), "git add"));
      added_.insert(file.path);
    }
    git_oid id;
    TRY(Done(git_index_write_tree(&id, index_.get()), "git write-tree"));
    git_tree* found = nullptr;
    TRY(Done(git_tree_lookup(&found, repository_.get(), &id), "git write-tree"));
    Tree tree(found);
    git_signature* made = nullptr;
    TRY(Done(git_signature_new(&made, commit.author.c_str(), commit.mail.c_str(), time_, 0),
             "git commit"));
    Signature signature(made);
    time_ += kBetweenCommits;
    const git_commit* parent = last_.get();
    TRY(Done(git_commit_create(&id, repository_.get(), "HEAD", made, made, nullptr,
                               commit.message.c_str(), found, parent == nullptr ? 0 : 1, &parent),
             "git commit"));
    git_commit* now = nullptr;
    TRY(Done(git_commit_lookup(&now, repository_.get(), &id), "git commit"));
    last_.reset(now);
    return Ok();
  }

  Status End() { return Done(git_index_write(index_.get()), "git index"); }

 private:
  static bool Takes(const SeedCommit& commit, const std::string& path) {
    return commit.paths.empty() ||
           std::any_of(commit.paths.begin(), commit.paths.end(), [&](const std::string& pattern) {
             return codec::GlobMatches(pattern, path, '/');
           });
  }

  const std::vector<SeedFile>& files_;
  Repository repository_;
  Index index_;
  Commit last_;
  git_time_t time_ = kFirstCommit;
  std::set<std::string> added_;
};

}  // namespace

Status MakeHistory(const std::string& path, const std::vector<SeedFile>& files,
                   const std::vector<SeedCommit>& commits) {
  TRY(Done(git_libgit2_init(), "libgit2"));
  History history(files);
  TRY(history.Begin(path));
  for (const SeedCommit& commit : commits) TRY(history.Add(commit));
  return history.End();
}

}  // namespace eval
