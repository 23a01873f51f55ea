// SPDX-License-Identifier: Apache-2.0
// The state of a Repository. Internal to change/.
#pragma once

#include <time.h>

#include <optional>
#include <string>

#include "change/git_handle.h"
#include "change/repository.h"

namespace change {

struct Repository::State {
  GitRepository git;
  std::string top;
  std::string prefix;
  std::string origin_url;
  ConversionFacts conversion;
  bool partial = false;  // A partial clone: an object that is not here may be at the remote.
  GitIndex index;        // Loaded by the first question about it.
  bool index_is_head = false;
  timespec index_time{};  // Its time (mtime) when it was loaded; as old as can be if unknown.

  // Returns the checkout's index; where libgit2 cannot read it (a split or a sparse one), one of
  // what HEAD has, which is the same but for what is being added; null if neither can be read.
  git_index* Index();
  // The entry at `path` (empty: the top) in the tree of `ref`, as ReadAtRef() looks for it.
  struct Found {
    git_filemode_t mode = GIT_FILEMODE_TREE;
    git_oid id = {};
  };
  Result<std::optional<Found>> Find(const std::string& ref, const std::string& path) const;
  // Returns the error that the object of `path` is not here.
  Error Missing(const std::string& ref, const std::string& path) const;
  // Returns the index's entry at `path`, relative to the checkout; null if it has none.
  const git_index_entry* Entry(const std::string& path) {
    if (Index() == nullptr) return nullptr;
    return git_index_get_bypath(Index(), (prefix + path).c_str(), 0);
  }
};

// Returns the commit that `ref` names, as ResolveCommit() looks it up.
Result<GitCommit> FindCommit(git_repository* repository, const std::string& ref);

}  // namespace change
