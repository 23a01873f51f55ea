// SPDX-License-Identifier: Apache-2.0
// Rules about names alone: which paths a patch may carry at all, and which an agent may not change.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace change {

// Whether `component` (no `/`) is `.git`, or is to some file system: another case, `git~1` and
// trailing dots, spaces or `:stream` (NTFS), ignored Unicode characters (HFS+). The rules of git's
// verify_path() with core.protectNTFS and core.protectHFS.
bool NamesGitDirectory(std::string_view component);

// A relative path that stays where it starts: 1 to 4000 bytes without NUL, no empty, `.` or `..`
// component, none that names a git directory.
bool ValidPath(std::string_view path);

// Whether a symbolic link at `path` to `target` may lead outside the checkout: an absolute or empty
// target, more leading `..` than `path` has directories, or a `..` after a name (which may be a
// link itself, so counting says nothing), or a git directory on the way.
bool LinkMayLeave(std::string_view path, std::string_view target);

struct ProtectedPath {
  std::string what;     // "a CI definition": what the path steers.
  bool refused = true;  // False: worth a warning only.
};

// Whether an agent may not change `path` (already valid), compared without regard to ASCII case.
std::optional<ProtectedPath> FindProtectedPath(std::string_view path);

}  // namespace change
