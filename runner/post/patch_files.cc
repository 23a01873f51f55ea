// SPDX-License-Identifier: Apache-2.0
#include "post/patch_files.h"

#include <utility>

#include "change/protected_path.h"
#include "change/tree_edit.h"
#include "codec/text/utf8.h"

namespace post {
namespace {

constexpr int kDirectoryMode = 0040000;
constexpr size_t kLinksMax = 20;

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
                  CommitTree& tree) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string above = path.substr(0, slash);
    forge::TreeEntry entry = TRY(tree.Find(prefix + above));
    if (IsFile(entry.mode) && edit.removed.contains(above)) return FileAndDirectory(above);
    if (edit.written.contains(above) || (entry.mode != 0 && entry.mode != kDirectoryMode)) {
      return InTheWay(above);
    }
  }
  forge::TreeEntry entry = TRY(tree.Find(prefix + path));
  if (entry.mode == kDirectoryMode) return FileAndDirectory(path);
  if (entry.mode != 0 && !edit.removed.contains(path)) return InTheWay(path);
  return Ok();
}

}  // namespace

CommitTree::CommitTree(forge::Branches& branches, std::string tree, Deadline deadline)
    : branches_(branches), deadline_(deadline) {
  ids_[""] = std::move(tree);
}

Result<const forge::Directory*> CommitTree::Open(const std::string& path) {
  auto known = directories_.find(path);
  if (known != directories_.end()) return &known->second;
  if (!ids_.contains(path)) {
    forge::TreeEntry entry = TRY(Find(path));
    if (entry.mode != kDirectoryMode) return static_cast<const forge::Directory*>(nullptr);
    ids_[path] = entry.id;
  }
  forge::Directory directory = TRY(branches_.ReadDirectory(ids_[path], deadline_));
  return &directories_.emplace(path, std::move(directory)).first->second;
}

Result<forge::TreeEntry> CommitTree::Find(const std::string& path) {
  size_t slash = path.rfind('/');
  const forge::Directory* directory =
      TRY(Open(slash == std::string::npos ? "" : path.substr(0, slash)));
  if (directory == nullptr) return forge::TreeEntry();
  auto entry = directory->find(path.substr(slash + 1));
  return entry == directory->end() ? forge::TreeEntry() : entry->second;
}

Result<std::string> CommitTree::ReadBlob(const std::string& id) {
  return branches_.ReadBlob(id, deadline_);
}

Result<std::vector<change::ProtectedLink>> CommitTree::ProtectedLinks() {
  std::vector<change::ProtectedLink> links;
  const forge::Directory* top = TRY(Open(""));
  for (const auto& [name, entry] : *top) {
    if (entry.mode != kLinkMode || links.size() == kLinksMax) continue;
    if (!change::FindProtectedPath(name, {})) continue;
    std::string target = TRY(ReadBlob(entry.id));
    if (change::ValidPath(target)) links.push_back({name, target});
  }
  return links;
}

Result<change::DirectoryNames> CommitTree::Names(const std::vector<std::string>& directories) {
  change::DirectoryNames names;
  for (const std::string& path : directories) {
    const forge::Directory* directory = TRY(Open(path));
    if (directory == nullptr) continue;
    for (const auto& [name, entry] : *directory) names[path].push_back(name);
  }
  return names;
}

Result<std::vector<forge::FileWrite>> PlanFiles(const std::string& patch, const std::string& prefix,
                                                CommitTree& tree) {
  change::OldFiles old_files = [&](const std::string& path) -> Result<change::OldFile> {
    forge::TreeEntry entry = TRY(tree.Find(prefix + path));
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
    forge::TreeEntry old = TRY(tree.Find(prefix + path));
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

}  // namespace post
