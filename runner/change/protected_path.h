// SPDX-License-Identifier: Apache-2.0
// Rules about names alone: which paths a patch may contain at all, and which an agent may not
// change.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/glob/glob.h"

namespace change {

// Returns whether `component` (no `/`) is `.git`, or is to some file system: another case, `git~1`
// and trailing dots, spaces or `:stream` (NTFS), ignored Unicode characters (HFS+). The rules of
// git's verify_path() with core.protectNTFS and core.protectHFS.
bool NamesGitDirectory(std::string_view component);

// True for a relative path that stays where it starts: 1 to 4000 bytes without NUL, no empty, `.`
// or `..` component, none that names a git directory.
bool ValidPath(std::string_view path);

// Returns whether a symbolic link at `path` to `target` may lead outside the checkout: an absolute
// or empty target, more leading `..` than `path` has directories, or a `..` after a name (which may
// be a link itself, so counting says nothing), or a git directory on the way; or if it may on
// Windows, where a backslash parts names, too, and `C:` is a drive.
bool LinkMayLeave(std::string_view path, std::string_view target);

// Returns whether coding agents read `path` (valid) as instructions or configuration of theirs, by
// themselves: CLAUDE.md at any depth, .mcp.json, .cursor/ and what is beneath it. Compared as by
// FindProtectedPath().
bool IsAgentInstruction(std::string_view path);

enum class PathAction { kAllow, kWarn, kRefuse };

// A rule for paths in a repository's own configuration.
struct PathRule {
  std::string pattern;  // The pattern as written.
  PathAction action = PathAction::kRefuse;
  codec::Glob glob;

  // Parses a pattern as in .gitignore, without regard to case: without a `/` (apart from a trailing
  // one) it is looked for at every depth, otherwise from the top; a directory means everything
  // beneath it; `*` stops at `/`, `**` does not. Fails with kInvalid for one that could never match
  // a path, and for `!`.
  static Result<PathRule> Parse(std::string_view pattern, PathAction action);
};

struct ProtectedPath {
  std::string why;      // "steers a CI definition, ...".
  bool refused = true;  // False if worth a warning only.
};

// Returns why `path` (already valid) is protected from changes by an agent, compared by
// codec::FoldFileName(); nullopt if it is not. A component that may be another's short name on NTFS
// (VSCODE~1) is protected itself, and a backslash may be a separator, as on Windows. Where `rules`
// match, the strictest of them counts and not what is built in; `.agentic-ci/`, where they come
// from, stays refused.
std::optional<ProtectedPath> FindProtectedPath(std::string_view path,
                                               const std::vector<PathRule>& rules);

}  // namespace change
