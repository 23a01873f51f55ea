// SPDX-License-Identifier: Apache-2.0
// A patch, checked against the files it starts from, as the files to remove and to write: for a
// working tree (apply.h), and for a commit that a forge makes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "change/capture.h"

namespace change {

struct TreeEdit {
  struct NewFile {
    std::string bytes;  // The content; for a symbolic link, its target.
    int mode = 0;       // 0100644, 0100755 or 0120000.
  };
  std::set<std::string> removed;           // Files that are there now; some are written again.
  std::map<std::string, NewFile> written;  // All valid paths (protected_path.h).
};

struct OldFile {
  int mode = 0;  // 0 for neither a file nor a symbolic link.
  std::string bytes;
};

// Gives the file at a valid path; fails with kNotFound if there is none.
using OldFiles = std::function<Result<OldFile>(const std::string& path)>;

// Returns the edit that `patch` asks for. Every old file must have exactly the bytes and the mode
// the patch starts from, and every new one comes out as the patch's own hash says. Fails with
// kInvalid if it does not apply, with kRefused for a path outside the checkout or in .git, for
// something other than a file, and for a link that may lead outside. Does not look for what is in
// the way of a new file.
Result<TreeEdit> PlanEdit(const std::string& patch, const OldFiles& old_files);

// Parses the changes from `patch` itself, for JudgeChanges(): a report's records of it need not be
// believed. Fails with kInvalid if it is not a patch as git writes it.
Result<ChangeSet> DescribePatch(std::string patch);

// Merges `ours` and `theirs`, which both were made of `base`, as git merges a file's lines. Returns
// nullopt where they conflict, and if one of them is not text (a NUL in it).
Result<std::optional<std::string>> MergeText(std::string_view base, std::string_view ours,
                                             std::string_view theirs);

// Returns git's name for a file's bytes, as 40 hexadecimal digits.
Result<std::string> BlobId(std::string_view bytes);

}  // namespace change
