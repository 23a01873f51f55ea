// SPDX-License-Identifier: Apache-2.0
// Owners for libgit2's objects, and the conversion of its errors. Internal to change/: no public
// header of this folder includes it.
#pragma once

#include <git2.h>

#include <memory>
#include <string_view>

#include "base/free_with.h"
#include "base/result.h"

namespace change {

using GitRepository = std::unique_ptr<git_repository, FreeWith<git_repository_free>>;
using GitConfig = std::unique_ptr<git_config, FreeWith<git_config_free>>;
using GitIndex = std::unique_ptr<git_index, FreeWith<git_index_free>>;
using GitReference = std::unique_ptr<git_reference, FreeWith<git_reference_free>>;
using GitObject = std::unique_ptr<git_object, FreeWith<git_object_free>>;
using GitCommit = std::unique_ptr<git_commit, FreeWith<git_commit_free>>;
using GitTree = std::unique_ptr<git_tree, FreeWith<git_tree_free>>;
using GitBlob = std::unique_ptr<git_blob, FreeWith<git_blob_free>>;
using GitOdb = std::unique_ptr<git_odb, FreeWith<git_odb_free>>;
using GitDiff = std::unique_ptr<git_diff, FreeWith<git_diff_free>>;
using GitPatch = std::unique_ptr<git_patch, FreeWith<git_patch_free>>;

// Prepares libgit2 once per process: no configuration search path at any level, and no check of who
// owns a repository (nothing in one is ever run). Call before any other libgit2 function.
Status StartGit();

// Returns libgit2's last error on this thread: "reading the tree: object not found - no match for
// id (...)".
Error GitError(Code code, std::string_view doing);

}  // namespace change
