// SPDX-License-Identifier: Apache-2.0
#include "change/tree_edit.h"

#include <utility>
#include <vector>

#include "change/git_handle.h"
#include "change/protected_path.h"
#include "change/sections/patch_section.h"

namespace change {
namespace {

Error DoesNotApply(const std::string& path, std::string_view why) {
  return Error{Code::kInvalid, "the patch does not apply: " + path + ": " + std::string(why)};
}

class Planner {
 public:
  explicit Planner(const OldFiles& old_files) : old_files_(old_files) {}

  Result<TreeEdit> Plan(const std::string& patch) {
    std::vector<PatchSection> sections = TRY(ReadSections(patch));
    for (const PatchSection& section : sections) TRY(PlanSection(section));
    return std::move(edit_);
  }

 private:
  Status PlanSection(const PatchSection& section) {
    for (const std::string& path : {section.old_path, section.new_path}) {
      if (!path.empty() && !ValidPath(path)) {
        return Error{Code::kRefused, "the patch names a path outside the checkout or in .git"};
      }
    }
    OldFile old;
    int mode = section.new_mode;
    if (!section.old_path.empty()) {
      old = TRY(ReadOld(section));
      if (mode == 0) mode = old.mode;
      if (!section.old_id.empty() && TRY(BlobId(old.bytes)) != section.old_id) {
        return DoesNotApply(section.old_path,
                            "the file differs from the one the patch was made from");
      }
      if (!edit_.removed.insert(section.old_path).second) {
        return DoesNotApply(section.old_path, "it appears twice in the patch");
      }
    }
    if (section.new_path.empty()) return Ok();
    Result<std::string> bytes = ApplySection(section, old.bytes);
    if (!bytes.ok()) return DoesNotApply(section.new_path, bytes.error().what);
    return PlanNew(section, std::move(bytes).value(), mode);
  }

  // The old file as it is, of the mode the patch starts from.
  Result<OldFile> ReadOld(const PatchSection& section) {
    Result<OldFile> file = old_files_(section.old_path);
    if (!file.ok() && file.error().code == Code::kNotFound) {
      return DoesNotApply(section.old_path, "it does not exist");
    }
    OldFile old = TRY(std::move(file));
    if (old.mode == 0) return DoesNotApply(section.old_path, "it is not a file");
    if (section.old_mode != 0 && section.old_mode != old.mode) {
      return DoesNotApply(section.old_path,
                          "its mode differs from the one the patch was made from");
    }
    return old;
  }

  Status PlanNew(const PatchSection& section, std::string bytes, int mode) {
    const std::string& path = section.new_path;
    // The full id in the patch says what was captured; nothing else is written.
    if (!section.new_id.empty() && TRY(BlobId(bytes)) != section.new_id) {
      return DoesNotApply(path, "the result differs from what was captured");
    }
    if (mode != 0100644 && mode != 0100755 && mode != 0120000) {
      return Error{Code::kRefused, "the patch creates something other than a file: " + path};
    }
    if (mode == 0120000 && LinkMayLeave(path, bytes)) {
      return Error{Code::kRefused,
                   "the patch creates a symbolic link that may lead outside the checkout: " + path};
    }
    if (!edit_.written.emplace(path, TreeEdit::NewFile{std::move(bytes), mode}).second) {
      return DoesNotApply(path, "it is created twice");
    }
    return Ok();
  }

  const OldFiles& old_files_;
  TreeEdit edit_;
};

// Returns the target of a link by the patch. A link that only moves keeps one that is not in the
// patch: "." stands for it, and PlanEdit() judges it once the bytes are known.
std::string LinkTargetOf(const PatchSection& section) {
  if (section.binary.has_value()) return "";
  if (section.hunks.empty() && !section.old_path.empty()) return ".";
  std::string target;
  for (const PatchHunk& hunk : section.hunks) {
    for (const PatchLine& line : hunk.lines) {
      if (line.kind == '-') continue;
      target.append(line.text).append(line.newline ? "\n" : "");
    }
  }
  return target;
}

FileChange Describe(const PatchSection& section) {
  FileChange file;
  const bool created = section.old_path.empty();
  const bool deleted = section.new_path.empty();
  file.path = deleted ? section.old_path : section.new_path;
  file.old_mode = section.old_mode;
  file.new_mode = section.new_mode;
  file.binary = section.binary.has_value();
  if (created) {
    file.kind = ChangeKind::kCreated;
  } else if (deleted) {
    file.kind = ChangeKind::kDeleted;
  } else if (section.old_path != section.new_path) {
    file.kind = ChangeKind::kRenamed;
    file.old_path = section.old_path;
  } else if (section.hunks.empty() && !file.binary) {
    file.kind = ChangeKind::kMode;
  }
  if (file.new_mode == 0120000) file.link_target = LinkTargetOf(section);
  return file;
}

}  // namespace

Result<TreeEdit> PlanEdit(const std::string& patch, const OldFiles& old_files) {
  TRY(StartGit());
  return Planner(old_files).Plan(patch);
}

Result<ChangeSet> DescribePatch(std::string patch) {
  ChangeSet changes;
  changes.patch = std::move(patch);
  std::vector<PatchSection> sections = TRY(ReadSections(changes.patch));
  for (const PatchSection& section : sections) changes.files.push_back(Describe(section));
  return changes;
}

Result<std::string> BlobId(std::string_view bytes) {
  git_oid id;
  if (git_odb_hash(&id, bytes.data(), bytes.size(), GIT_OBJECT_BLOB) != 0) {
    return GitError(Code::kBug, "hashing a file");
  }
  char text[GIT_OID_HEXSZ + 1];
  return std::string(git_oid_tostr(text, sizeof text, &id));
}

Result<std::optional<std::string>> MergeText(std::string_view base, std::string_view ours,
                                             std::string_view theirs) {
  TRY(StartGit());
  const auto side = [](std::string_view text) {
    git_merge_file_input input = GIT_MERGE_FILE_INPUT_INIT;
    input.ptr = text.data();
    input.size = text.size();
    return input;
  };
  for (std::string_view text : {base, ours, theirs}) {
    if (text.find('\0') != std::string_view::npos) return std::optional<std::string>();
  }
  const git_merge_file_input sides[] = {side(base), side(ours), side(theirs)};
  git_merge_file_result merged = {};
  if (::git_merge_file(&merged, &sides[0], &sides[1], &sides[2], nullptr) != 0) {
    return GitError(Code::kIo, "merging a file");
  }
  std::optional<std::string> text;
  if (merged.automergeable != 0) text.emplace(merged.ptr, merged.len);
  ::git_merge_file_result_free(&merged);
  return text;
}

}  // namespace change
