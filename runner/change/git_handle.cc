// SPDX-License-Identifier: Apache-2.0
#include "change/git_handle.h"

#include <iterator>
#include <string>

// Read by LeakSanitizer, where it is linked in: libgit2 1.5 does not free its match data when a
// line of configuration does not match a pattern, a few kilobytes for each repository of format
// version 1.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libpcre2-8\n"; }

namespace change {
namespace {

Status StartOnce() {
  if (git_libgit2_init() < 0) return GitError(Code::kBug, "starting libgit2");
  for (int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
                    GIT_CONFIG_LEVEL_GLOBAL}) {
    if (git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "") != 0) {
      return GitError(Code::kBug, "closing libgit2's search path");
    }
  }
  if (git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0) != 0) {
    return GitError(Code::kBug, "setting libgit2's owner validation");
  }
  // Partial clones, sparse checkouts and `git worktree add --relative-paths` (2.48) leave these
  // behind. None changes how objects, references or the index are read.
  const char* extensions[] = {"partialclone", "worktreeconfig", "preciousobjects",
                              "relativeworktrees"};
  if (git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions, std::size(extensions)) != 0) {
    return GitError(Code::kBug, "setting libgit2's extensions");
  }
  return Ok();
}

}  // namespace

Status StartGit() {
  // Initialised by the first caller; a failure is remembered, and there is nothing to undo.
  static const Status kStarted = StartOnce();
  return kStarted;
}

Error GitError(Code code, std::string_view doing) {
  const git_error* last = git_error_last();
  std::string what(doing);
  what += ": ";
  const std::string_view said =
      last != nullptr && last->message != nullptr ? last->message : "unknown libgit2 error";
  Error error{code, what.append(said)};
  // An extension that this version of libgit2 does not know.
  if (said.find("extensions.objectformat") != said.npos) error.kind = ErrorKind::kSha256Objects;
  return error;
}

}  // namespace change
