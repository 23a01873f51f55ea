// SPDX-License-Identifier: Apache-2.0
#include "post/patch_files.h"

#include <optional>
#include <set>
#include <utility>

#include "change/protected_links.h"
#include "change/tree_edit.h"
#include "codec/text/utf8.h"

namespace post {
namespace {

constexpr int kDirectoryMode = 0040000;
constexpr size_t kLinksMax = 1000;
constexpr size_t kTargetsMax = 100;       // Each is a request.
constexpr size_t kTargetBytesMax = 4095;  // The kernel has the same bound.

bool IsFile(int mode) { return mode == 0100644 || mode == 0100755 || mode == kLinkMode; }

Error InTheWay(const std::string& path) {
  return Error{Code::kInvalid, "the patch does not apply: " + path + " is in the way"};
}

// No forge's API promises to make one of the other in a commit.
Error FileAndDirectory(const std::string& path) {
  return Error{Code::kInvalid,
               path +
                   " is a file on one side of the patch and a directory on the "
                   "other, which cannot be delivered",
               "git apply changes.patch"};
}

// Checks that nothing is at a new path but what the edit removes, and that what is above it stays a
// directory.
Status CheckPlace(const std::string& path, const std::string& prefix, const change::TreeEdit& edit,
                  const CommitTree& tree) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    forge::TreeEntry entry = tree.Find(prefix + above);
    if (IsFile(entry.mode) && edit.removed.contains(above)) return FileAndDirectory(above);
    if (edit.written.contains(above) || (entry.mode != 0 && entry.mode != kDirectoryMode)) {
      return InTheWay(above);
    }
  }
  forge::TreeEntry entry = tree.Find(prefix + path);
  if (entry.mode == kDirectoryMode) return FileAndDirectory(path);
  if (entry.mode != 0 && !edit.removed.contains(path)) return InTheWay(path);
  return Ok();
}

bool IsText(int mode) { return mode == 0100644 || mode == 0100755; }

// Moves one file of a plan to another commit.
class FileMerge {
 public:
  FileMerge(const CommitTree& seen, const CommitTree& head, const std::set<std::string>& removed)
      : seen_(seen), head_(head), removed_(removed) {}

  enum class End { kSame, kMerged, kDone, kConflict };
  Result<End> Merge(forge::FileWrite& file) const {
    const forge::TreeEntry there = head_.Find(file.path);
    if (!file.removed && SomethingAbove(file.path)) return End::kConflict;
    if (there.mode == file.old_mode && there.id == file.old_id) return End::kSame;
    if (file.removed) return there.mode == 0 ? End::kDone : End::kConflict;
    if (!IsText(there.mode) || !IsText(file.mode)) return End::kConflict;
    const std::string theirs = TRY(head_.ReadBlob(there.id));
    const bool text = IsText(file.old_mode);
    const bool chmod = text && file.mode != file.old_mode;
    const int mode = chmod ? file.mode : there.mode;
    if (theirs == file.bytes && mode == there.mode) return End::kDone;
    if (!text) return End::kConflict;  // Both made it.
    const std::string base = TRY(seen_.ReadBlob(file.old_id));
    std::optional<std::string> merged = TRY(change::MergeText(base, file.bytes, theirs));
    if (!merged) return End::kConflict;
    if (*merged == theirs && mode == there.mode) return End::kDone;
    file.bytes = *std::move(merged);
    file.mode = mode;
    file.old_id = there.id;
    file.old_mode = there.mode;
    return End::kMerged;
  }

 private:
  // Returns whether a directory above the path is a file there, or a link.
  bool SomethingAbove(const std::string& path) const {
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      const int mode = head_.Find(above).mode;
      if (mode != 0 && mode != kDirectoryMode && !removed_.contains(above)) return true;
    }
    return false;
  }

  const CommitTree& seen_;
  const CommitTree& head_;
  const std::set<std::string>& removed_;
};

Error TooManyLinks() {
  return Error{Code::kInvalid, "the commit has too many symbolic links at protected paths"};
}

}  // namespace

Result<CommitTree> CommitTree::Read(forge::Branches& branches, const std::string& tree,
                                    Deadline deadline) {
  forge::Tree entries = TRY(branches.ReadTree(tree, deadline));
  return CommitTree(branches, std::move(entries), deadline);
}

forge::TreeEntry CommitTree::Find(const std::string& path) const {
  auto entry = entries_.find(path);
  return entry == entries_.end() ? forge::TreeEntry() : entry->second;
}

Result<std::string> CommitTree::ReadBlob(const std::string& id) const {
  return branches_.ReadBlob(id, deadline_);
}

Result<std::string> CommitTree::ReadTarget(const std::string& id, Targets& targets) const {
  auto known = targets.find(id);
  if (known != targets.end()) return known->second;
  if (targets.size() == kTargetsMax) return TooManyLinks();
  std::string target = TRY(ReadBlob(id));
  if (target.empty() || target.size() > kTargetBytesMax || target.find('\0') != target.npos) {
    return Error{Code::kInvalid, "a symbolic link of the commit leads to no possible path"};
  }
  return targets.emplace(id, std::move(target)).first->second;
}

Result<std::vector<change::ProtectedLink>> CommitTree::ProtectedLinks() const {
  Targets targets;
  change::LinkWalk walk([&](const std::string& path) -> Result<std::string> {
    if (walk.links().size() > kLinksMax) return TooManyLinks();
    const forge::TreeEntry entry = Find(path);
    return entry.mode == kLinkMode ? ReadTarget(entry.id, targets) : Result<std::string>("");
  });
  std::vector<std::string> paths;
  for (const auto& [path, entry] : entries_) {
    if (entry.mode == kLinkMode) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    if (change::StandsForProtected(path)) TRY(walk.Follow(path, path));
  }
  TRY(walk.FollowDirectories(paths));
  if (walk.links().size() > kLinksMax) return TooManyLinks();
  return walk.links();
}

change::DirectoryNames CommitTree::Names(const std::vector<std::string>& directories) const {
  change::DirectoryNames names;
  for (const std::string& directory : directories) {
    const std::string above = directory.empty() ? "" : directory + "/";
    for (auto entry = entries_.lower_bound(above);
         entry != entries_.end() && entry->first.starts_with(above); ++entry) {
      std::string name = entry->first.substr(above.size());
      if (name.find('/') == std::string::npos) names[directory].push_back(std::move(name));
    }
  }
  return names;
}

Result<std::vector<forge::FileWrite>> PlanFiles(const std::string& patch, const std::string& prefix,
                                                const CommitTree& tree) {
  change::OldFiles old_files = [&](const std::string& path) -> Result<change::OldFile> {
    forge::TreeEntry entry = tree.Find(prefix + path);
    if (entry.mode == 0) return Error{Code::kNotFound, path + " does not exist"};
    if (!IsFile(entry.mode)) return change::OldFile();
    std::string bytes = TRY(tree.ReadBlob(entry.id));
    return change::OldFile{entry.mode, std::move(bytes)};
  };
  change::TreeEdit edit = TRY(change::PlanEdit(patch, old_files));
  std::vector<forge::FileWrite> files;
  auto add = [&](const std::string& path) -> Result<forge::FileWrite*> {
    if (codec::FindInvalidUtf8(path) != std::string_view::npos) {
      return Error{Code::kRefused, "a path that is not UTF-8 cannot be given to the forge"};
    }
    forge::TreeEntry old = tree.Find(prefix + path);
    forge::FileWrite file;
    file.path = prefix + path;
    file.old_id = old.id;
    file.old_mode = old.mode;
    files.push_back(std::move(file));
    return &files.back();
  };
  for (const std::string& path : edit.removed) {
    if (edit.written.contains(path)) continue;
    forge::FileWrite* file = TRY(add(path));
    file->removed = true;
  }
  for (auto& [path, written] : edit.written) {
    TRY(CheckPlace(path, prefix, edit, tree));
    forge::FileWrite* file = TRY(add(path));
    file->bytes = std::move(written.bytes);
    file->mode = written.mode;
  }
  return files;
}

bool CommitTree::KeepsChanges(const CommitTree& before, const CommitTree& head,
                              const std::set<std::string>& written) const {
  constexpr int kDirectoryMode = 040000;
  auto same = [](const forge::TreeEntry& a, const forge::TreeEntry& b) {
    return a.mode == b.mode && a.id == b.id;
  };
  for (const forge::Tree* tree : {&entries_, &before.entries_}) {
    for (const auto& [path, entry] : *tree) {
      if (entry.mode == kDirectoryMode || same(Find(path), before.Find(path))) continue;
      if (!same(Find(path), head.Find(path)) && !written.contains(path)) return false;
    }
  }
  return true;
}

Result<std::set<std::string>> EqualPaths(const std::vector<forge::FileWrite>& files,
                                         const CommitTree& tree) {
  std::set<std::string> equal;
  for (const forge::FileWrite& file : files) {
    const forge::TreeEntry there = tree.Find(file.path);
    if (file.removed ? there.mode != 0 : there.mode != file.mode) continue;
    if (file.removed || there.id == TRY(change::BlobId(file.bytes))) equal.insert(file.path);
  }
  return equal;
}

Result<MergedFiles> MergeFiles(std::vector<forge::FileWrite> files, const CommitTree& seen,
                               const CommitTree& head) {
  std::set<std::string> removed;
  for (const forge::FileWrite& file : files) {
    if (file.removed) removed.insert(file.path);
  }
  const FileMerge merge(seen, head, removed);
  MergedFiles plan;
  for (forge::FileWrite& file : files) {
    const FileMerge::End end = TRY(merge.Merge(file));
    if (end == FileMerge::End::kConflict) plan.conflicts.push_back(file.path);
    if (end == FileMerge::End::kMerged) plan.merged.push_back(file.path);
    if (end == FileMerge::End::kSame || end == FileMerge::End::kMerged) {
      plan.files.push_back(std::move(file));
    }
  }
  return plan;
}

}  // namespace post
