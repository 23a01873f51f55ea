// SPDX-License-Identifier: Apache-2.0
#include "change/layer_watch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "base/tree.h"
#include "change/protected_path.h"
#include "change/tree_file.h"
#include "change/upper_walk.h"

namespace change {
namespace {

constexpr int64_t kComparedBytesMax = 16 << 20;
// Created files that a deleted one of the lower layer is compared with, to find where it went.
constexpr size_t kRenamesComparedMax = 64;

// Returns whether the layer got its version of `path` at `time` or later. For a whiteout the answer
// is yes, since its inode may be shared with older ones.
bool IsMadeSince(int layer, const std::string& path, const timespec& time) {
  Result<Fd> place = sys::OpenBeneath(layer, path, O_PATH | O_NOFOLLOW);
  if (!place.ok()) return sys::IsAbsent(place.error());
  struct stat st {};
  if (::fstat(place.value().get(), &st) != 0) return false;
  if (S_ISCHR(st.st_mode)) return true;
  const std::optional<timespec> made = BirthTime(place.value().get());
  return made && !IsLater(time, *made);
}

Status MakeOpaque(int directory) {
  struct stat st {};
  if (::fstat(directory, &st) != 0) return Errno("fstat");
  // The owner needs the right to write for it; root does not.
  bool writable = (st.st_mode & S_IWUSR) != 0 || ::fchmod(directory, st.st_mode | S_IWUSR) != 0;
  Status marked = Ok();
  if (::fsetxattr(directory, "user.overlay.opaque", "y", 1, 0) != 0) marked = Errno("fsetxattr");
  if (!writable) (void)::fchmod(directory, st.st_mode & 07777);
  return marked;
}

}  // namespace

LayerWatch::LayerWatch(int layer, Fd lower, bool copied, Since since, size_t path_bytes_max)
    : layer_(layer), lower_(std::move(lower)), copied_(copied), path_bytes_max_(path_bytes_max) {
  if (since == Since::kBeginning && !copied) return;
  bool complete = true;
  before_ = Scan(&complete);
}

LayerWatch::Entries LayerWatch::Scan(bool* complete) {
  Entries entries;
  size_t path_bytes = 0;
  std::vector<std::string> pending = {""};
  while (!pending.empty()) {
    std::string path = std::move(pending.back());
    pending.pop_back();
    Result<Fd> directory = OpenDirectory(layer_, path, Unreadable::kFail);
    Result<std::vector<std::string>> names = Error{};
    if (directory.ok()) names = sys::DirectoryNames(directory.value().get(), path_bytes_max_);
    if (!names.ok()) {
      *complete = false;
      continue;
    }
    int fd = directory.value().get();
    if (!copied_ && !path.empty()) entries[path].opaque = OverlayMark(fd, "opaque") == 'y';
    // The names are sorted: each entry of this directory is inserted right before this position.
    const auto behind = entries.upper_bound(path.empty() ? path : path + "/");
    for (const std::string& name : names.value()) {
      struct stat st {};
      if (NamesGitDirectory(name)) continue;
      if (::fstatat(fd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      std::string child = PathIn(path, name);
      path_bytes += child.size();
      if (entries.size() >= kEntriesMax || path_bytes > path_bytes_max_) {
        *complete = false;
        return entries;
      }
      Entry entry{st.st_ino, st.st_mode, st.st_size, st.st_mtim, st.st_ctim, false, false};
      entry.whiteout = S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
      if (S_ISDIR(st.st_mode)) pending.push_back(child);
      if (IsLater(entry.changed, newest_)) newest_ = entry.changed;
      entries.emplace_hint(behind, std::move(child), entry);
    }
  }
  return entries;
}

// Returns the entries of `after` that are not in `before_`, or are different there. Adds the paths
// that are only in `before_` to the candidates.
std::vector<LayerWatch::Entries::const_iterator> LayerWatch::Compare(const Entries& after,
                                                                     Candidates* candidates) const {
  std::vector<Entries::const_iterator> changed;
  auto known = before_.begin();
  for (auto now = after.begin(); now != after.end(); ++now) {
    for (; known != before_.end() && known->first < now->first; ++known) {
      candidates->paths.insert(known->first);
    }
    const bool there = known != before_.end() && known->first == now->first;
    if (!there || !IsSameEntry(known->second, now->second)) changed.push_back(now);
    if (there) ++known;
  }
  for (; known != before_.end(); ++known) candidates->paths.insert(known->first);
  return changed;
}

bool LayerWatch::IsSameEntry(const Entry& one, const Entry& other) {
  return one.inode == other.inode && IsSame(one.changed, other.changed) && one.mode == other.mode &&
         one.opaque == other.opaque;
}

// The clock of the times of change ticks every few milliseconds: what changes within the tick of
// `newest_` looks as old as that.
void LayerWatch::Settle() const {
  constexpr int kMillisecondsMax = 20;  // A clock that was set back is not waited for.
  for (int i = 0; i < kMillisecondsMax; ++i) {
    timespec now{};
    if (::clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return;
    if (IsLater(now, newest_)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Returns whether the lower layer is seen at `path`, where `entries` have nothing at it.
bool LayerWatch::IsVisible(const Entries& entries, const std::string& path) const {
  if (copied_) return false;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    auto above = entries.find(path.substr(0, slash));
    if (above == entries.end()) continue;
    if (above->second.opaque || !S_ISDIR(above->second.mode)) return false;
  }
  return true;
}

// A directory of both layers shows what is in the lower one.
bool LayerWatch::FoundLower(const std::string& path) const {
  auto known = before_.find(path);
  bool merged = known != before_.end() && S_ISDIR(known->second.mode) && !known->second.opaque;
  return (known == before_.end() || merged) && IsVisible(before_, path);
}

bool LayerWatch::Exists(const Entries& entries, const std::string& path, mode_t* mode) const {
  auto found = entries.find(path);
  if (found != entries.end()) {
    *mode = found->second.mode;
    return !found->second.whiteout;
  }
  if (!IsVisible(entries, path)) return false;
  Result<Fd> lower = sys::OpenBeneath(lower_.get(), path, O_PATH | O_NOFOLLOW);
  struct stat st {};
  if (!lower.ok() || ::fstat(lower.value().get(), &st) != 0) return false;
  *mode = st.st_mode;
  return true;
}

// All that the lower layer showed beneath `path`.
void LayerWatch::AddHidden(const std::string& path, const Entries& after, bool* complete,
                           Candidates* candidates) const {
  std::vector<std::string> pending = {path};
  while (!pending.empty()) {
    std::string at = std::move(pending.back());
    pending.pop_back();
    auto known = before_.find(at);
    if (known != before_.end() && (known->second.opaque || !S_ISDIR(known->second.mode))) continue;
    Result<Fd> directory = OpenDirectory(lower_.get(), at, Unreadable::kFail);
    if (!directory.ok() || !IsVisible(before_, PathIn(at, "x"))) continue;
    Result<std::vector<std::string>> names =
        sys::DirectoryNames(directory.value().get(), path_bytes_max_);
    if (!names.ok()) {
      *complete = false;
      continue;
    }
    for (const std::string& name : names.value()) {
      if (NamesGitDirectory(name)) continue;
      if (candidates->paths.size() >= kEntriesMax || candidates->hidden_bytes > path_bytes_max_) {
        *complete = false;
        return;
      }
      std::string child = PathIn(at, name);
      if (!after.contains(child) && candidates->paths.insert(child).second) {
        candidates->hidden_bytes += child.size();
      }
      pending.push_back(std::move(child));
    }
  }
}

// The upper layer's file at `path` has the lower one's content.
bool LayerWatch::CopiedUp(const std::string& path) const {
  if (copied_) return false;
  Result<TreeFile> upper = TreeFile::Open(layer_, path, Unreadable::kFail);
  Result<TreeFile> lower = TreeFile::Open(lower_.get(), path, Unreadable::kFail);
  if (!upper.ok() || !lower.ok() || upper.value().size() != lower.value().size()) return false;
  if (upper.value().size() > kComparedBytesMax) return false;
  Result<bool> same = upper.value().SameBytes(lower.value());
  return same.ok() && same.value();
}

// The layer keeps a file's inode when it moves. What came from the lower layer was copied up first:
// there the content tells.
void LayerWatch::PairRenames(const Entries& after, std::vector<TouchedFile>* files) const {
  std::map<uint64_t, size_t> created;
  std::vector<size_t> contents;
  for (size_t i = 0; i < files->size(); ++i) {
    const TouchedFile& file = (*files)[i];
    if (file.kind != ChangeKind::kCreated || file.directory) continue;
    created.emplace(after.at(file.path).inode, i);
    if (contents.size() < kRenamesComparedMax) contents.push_back(i);
  }
  std::vector<bool> paired(files->size());
  auto pair = [&](TouchedFile& gone, size_t to) {
    if (paired[to]) return false;
    (*files)[to].kind = ChangeKind::kRenamed;
    (*files)[to].old_path = gone.path;
    (*files)[to].found_lower = gone.found_lower;
    paired[to] = true;
    gone.path.clear();
    return true;
  };
  for (TouchedFile& gone : *files) {
    if (gone.kind != ChangeKind::kDeleted || gone.directory) continue;
    auto known = before_.find(gone.path);
    if (known != before_.end()) {
      auto moved = created.find(known->second.inode);
      if (moved == created.end()) continue;
      // A file system gives what is made next the inode of what was just removed.
      const mode_t type = after.at((*files)[moved->second].path).mode & S_IFMT;
      if (type == (known->second.mode & S_IFMT)) pair(gone, moved->second);
      continue;
    }
    Result<TreeFile> lower = TreeFile::Open(lower_.get(), gone.path, Unreadable::kFail);
    if (!lower.ok() || lower.value().size() == 0) continue;
    if (lower.value().size() > kComparedBytesMax) continue;
    for (size_t to : contents) {
      if (after.at((*files)[to].path).bytes != lower.value().size()) continue;
      Result<TreeFile> upper = TreeFile::Open(layer_, (*files)[to].path, Unreadable::kFail);
      if (!upper.ok()) continue;
      Result<bool> same = upper.value().SameBytes(lower.value());
      if (same.ok() && same.value() && pair(gone, to)) break;
    }
  }
  std::erase_if(*files, [](const TouchedFile& file) { return file.path.empty(); });
}

TouchedFiles LayerWatch::Look() {
  TouchedFiles touched;
  Entries after = Scan(&touched.complete);
  Candidates candidates;
  for (const auto& changed : Compare(after, &candidates)) {
    const auto& [path, entry] = *changed;
    candidates.paths.insert(path);
    bool hides = entry.whiteout || entry.opaque || !S_ISDIR(entry.mode);
    if (hides && !copied_) AddHidden(path, after, &touched.complete, &candidates);
  }
  for (const std::string& path : candidates.paths) {
    mode_t old_mode = 0;
    mode_t new_mode = 0;
    bool was = Exists(before_, path, &old_mode);
    bool is = Exists(after, path, &new_mode);
    if (!was && !is) continue;
    TouchedFile file{ChangeKind::kModified, path, "", S_ISDIR(is ? new_mode : old_mode),
                     FoundLower(path)};
    if (!was || !is) {
      file.kind = was ? ChangeKind::kDeleted : ChangeKind::kCreated;
      touched.files.push_back(std::move(file));
      continue;
    }
    auto old = before_.find(path);
    auto now = after.find(path);
    bool same_type = (old_mode & S_IFMT) == (new_mode & S_IFMT);
    bool same_content = false;
    if (same_type && old != before_.end() && now != after.end()) {
      // A change of the mode changes the time of change too.
      same_content = old->second.inode == now->second.inode && old_mode != new_mode &&
                     old->second.bytes == now->second.bytes &&
                     IsSame(old->second.modified, now->second.modified);
    } else if (same_type && !S_ISDIR(new_mode)) {
      same_content = CopiedUp(path);
    }
    if (same_type && (same_content || S_ISDIR(new_mode))) {
      if (old_mode == new_mode) continue;
      file.kind = ChangeKind::kMode;
    }
    touched.files.push_back(std::move(file));
  }
  PairRenames(after, &touched.files);
  before_ = std::move(after);
  return touched;
}

Status HideFutureLower(int upper, int lower) {
  std::vector<std::string> pending = {""};
  while (!pending.empty()) {
    std::string path = std::move(pending.back());
    pending.pop_back();
    Result<Fd> opened = OpenDirectory(upper, path, Unreadable::kMakeReadable);
    if (!opened.ok()) continue;  // It is not in the patch either.
    int directory = opened.value().get();
    if (!path.empty() && OverlayMark(directory, "opaque") == 'y') continue;
    if (!path.empty() && !OpenDirectory(lower, path, Unreadable::kFail).ok()) {
      TRY(MakeOpaque(directory).Context("marking " + path));
      continue;
    }
    for (const std::string& name : TRY(sys::DirectoryNames(directory))) {
      struct stat st {};
      if (NamesGitDirectory(name)) continue;
      if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(st.st_mode)) pending.push_back(PathIn(path, name));
    }
  }
  return Ok();
}

void NoteFound(const std::string& checkout, int layer, const std::vector<TouchedFile>& touched,
               const timespec& since, const Beginning& beginning, Meanwhile* meanwhile) {
  Result<Fd> root = sys::Open(checkout, O_RDONLY | O_DIRECTORY);
  if (!root.ok()) return;
  for (const TouchedFile& file : touched) {
    const std::string& path = file.old_path.empty() ? file.path : file.old_path;
    const std::optional<timespec> changed = TimeBeneath(root.value().get(), path);
    if (!file.found_lower || !changed || !IsLater(*changed, since)) continue;
    if (IsLater(*changed, beginning.checkout)) continue;
    if (!IsMadeSince(layer, path, beginning.layer)) continue;
    meanwhile->found.try_emplace(
        path, Meanwhile::Found{beginning.checkout, ContentBeneath(root.value().get(), path)});
  }
}

}  // namespace change
