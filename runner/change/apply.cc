// SPDX-License-Identifier: Apache-2.0
#include "change/apply.h"

#include <fcntl.h>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "change/git_handle.h"
#include "change/patch_section.h"
#include "change/protected_path.h"
#include "change/tree_file.h"
#include "change/tree_writer.h"

namespace change {
namespace {

// Of one old file; the capture's own limits are lower.
constexpr int64_t kFileBytesMax = int64_t{1} << 30;

Error DoesNotApply(const std::string& path, std::string_view why) {
  return Error{Code::kInvalid, "the patch does not apply: " + path + ": " + std::string(why)};
}

// git's name for these bytes.
Result<std::string> BlobId(std::string_view bytes) {
  git_oid id;
  if (git_odb_hash(&id, bytes.data(), bytes.size(), GIT_OBJECT_BLOB) != 0) {
    return GitError(Code::kBug, "hashing a file");
  }
  char text[GIT_OID_HEXSZ + 1];
  return std::string(git_oid_tostr(text, sizeof text, &id));
}

// Turns a patch into the files to remove and to write, against the tree as it is now.
class Planner {
 public:
  explicit Planner(int root) : root_(root) {}

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
    std::string old_bytes;
    int mode = section.new_mode;
    if (!section.old_path.empty()) {
      TreeFile file = TRY(OpenOld(section));
      if (mode == 0) mode = file.mode();
      old_bytes = TRY(file.Read(kFileBytesMax));
      if (!section.old_id.empty() && TRY(BlobId(old_bytes)) != section.old_id) {
        return DoesNotApply(section.old_path,
                            "the file differs from the one the patch was made from");
      }
      if (!edit_.removed.insert(section.old_path).second) {
        return DoesNotApply(section.old_path, "it appears twice in the patch");
      }
    }
    if (section.new_path.empty()) return Ok();
    Result<std::string> bytes = ApplySection(section, old_bytes);
    if (!bytes.ok()) return DoesNotApply(section.new_path, bytes.error().what);
    return PlanNew(section, std::move(bytes).value(), mode);
  }

  // The old file as it is in the tree, of the mode the patch starts from.
  Result<TreeFile> OpenOld(const PatchSection& section) {
    Result<TreeFile> file = TreeFile::Open(root_, section.old_path, Unreadable::kFail);
    if (!file.ok() && file.error().code == Code::kNotFound) {
      return DoesNotApply(section.old_path, "it does not exist");
    }
    if (!file.ok()) return file;
    if (file.value().mode() == 0) return DoesNotApply(section.old_path, "it is not a file");
    if (section.old_mode != 0 && section.old_mode != file.value().mode()) {
      return DoesNotApply(section.old_path,
                          "its mode differs from the one the patch was made from");
    }
    return file;
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

  int root_;
  TreeEdit edit_;
};

}  // namespace

Status ApplyPatch(const std::string& checkout, const ChangeSet& changes) {
  if (!changes.complete) {
    return Error{Code::kRefused, "the changes are incomplete, so they are not applied"};
  }
  if (changes.patch.empty()) return Ok();
  TRY(StartGit());
  Fd root = TRY(sys::Open(checkout, O_RDONLY | O_DIRECTORY).Context("opening the checkout"));
  TreeEdit edit = TRY(Planner(root.get()).Plan(changes.patch));
  return WriteTree(root.get(), edit);
}

}  // namespace change
