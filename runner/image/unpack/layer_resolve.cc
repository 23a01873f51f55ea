// SPDX-License-Identifier: Apache-2.0
// The half of LayerWriter that finds directories, and asks the lower layers where this layer does
// not say.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "image/unpack/layer_writer.h"

namespace image {
namespace {

constexpr int kLinksMax = 40;  // The kernel's own bound.

std::string Join(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

}  // namespace

Result<int> LayerWriter::Parent(const std::string& path) {
  if (parent_known_ && path == parent_path_) return parent_.get();
  parent_known_ = false;
  // Without symbolic links, so that the path is the real one, and no deeper than it looks.
  Result<Fd> fd = sys::OpenBeneath(root_.get(), path.empty() ? "." : path, O_PATH | O_DIRECTORY);
  if (fd.ok()) {
    parent_ = std::move(fd).value();
    parent_real_ = path;
  } else if (sys::IsAbsent(fd.error())) {
    std::vector<Step> steps = TRY(Resolve(path, Missing::kMake));
    parent_real_.clear();
    for (const Step& step : steps) parent_real_ = Join(parent_real_, step.name);
    parent_ = std::move(steps.back().fd);
  } else {
    return BadEntry(path, "not a directory: " + fd.error().what);
  }
  parent_path_ = path;
  parent_known_ = true;
  return parent_.get();
}

Result<std::vector<LayerWriter::Step>> LayerWriter::Resolve(const std::string& path,
                                                            Missing missing) {
  std::vector<Step> steps;
  TRY(Descend(steps, "", false));
  std::vector<std::string> ahead;  // The next component last.
  auto push = [&](const std::string& names) {
    std::vector<std::string_view> split = SplitPath(names);
    ahead.insert(ahead.end(), split.rbegin(), split.rend());
  };
  push(path);
  for (int links = 0; !ahead.empty();) {
    std::string name = std::move(ahead.back());
    ahead.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      if (steps.size() > 1) steps.pop_back();
      continue;
    }
    if (steps.size() > kLayerDepthMax || name.size() > kLayerNameBytesMax) {
      return BadEntry(path.substr(0, 256), "leads too deep");
    }
    struct stat st {};
    bool here = ::fstatat(steps.back().fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!here && errno != ENOENT) return WritingFailed(path);
    bool over_whiteout = here && S_ISCHR(st.st_mode);
    LowerEntry entry;
    if (here && S_ISLNK(st.st_mode)) {
      char target[PATH_MAX];
      ssize_t n = ::readlinkat(steps.back().fd.get(), name.c_str(), target, sizeof target);
      if (n < 0) return WritingFailed(path);
      entry.kind = LowerEntry::Kind::kSymlink;
      entry.link.assign(target, static_cast<size_t>(n));
    } else if (here && S_ISDIR(st.st_mode)) {
      TRY(Descend(steps, name, steps.back().lower_hidden));
      continue;
    } else if (here && !over_whiteout) {
      return BadEntry(path, name + " is not a directory");
    } else if (!over_whiteout) {
      entry = TRY(LookBelow(steps, name));
    }
    if (entry.kind == LowerEntry::Kind::kSymlink) {
      if (++links > kLinksMax) return BadEntry(path, "too many symbolic links");
      if (entry.link.starts_with('/')) steps.resize(1);
      push(entry.link);
      continue;
    }
    bool absent = entry.kind == LowerEntry::Kind::kAbsent;
    if (!absent && entry.kind != LowerEntry::Kind::kDirectory) {
      return BadEntry(path, name + " is not a directory");
    }
    if (absent && missing == Missing::kFail) return BadEntry(path, name + " does not exist");
    TRY(MakeMissing(steps, name, entry, over_whiteout));
  }
  return steps;
}

Status LayerWriter::Descend(std::vector<Step>& steps, const std::string& name, bool lower_hidden) {
  int parent = steps.empty() ? root_.get() : steps.back().fd.get();
  const std::string& target = steps.empty() ? "." : name;
  Fd fd = TRY(sys::OpenAt(parent, target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  char opaque = 0;
  bool hides = ::fgetxattr(fd.get(), kOpaqueXattr, &opaque, 1) == 1;
  steps.push_back({name, std::move(fd), lower_hidden || hides});
  return Ok();
}

Result<LowerEntry> LayerWriter::LookBelow(const std::vector<Step>& steps, const std::string& name) {
  if (steps.back().lower_hidden) return LowerEntry{};
  reached_below_ = true;
  if (lower_ == nullptr) return LowerEntry{};
  std::string path;
  for (const Step& step : steps) path = Join(path, step.name);
  return lower_->Look(Join(path, name));
}

// Makes a missing directory as the lower layers have it, since overlayfs shows the upper
// directory's mode and time.
Status LayerWriter::MakeMissing(std::vector<Step>& steps, const std::string& name,
                                const LowerEntry& lower, bool over_whiteout) {
  bool below = lower.kind == LowerEntry::Kind::kDirectory;
  mode_t mode = below ? (lower.mode & 07777) | S_IRWXU : 0755;
  int parent = steps.back().fd.get();
  if (over_whiteout && ::unlinkat(parent, name.c_str(), 0) != 0) return WritingFailed(name);
  TRY(budget_.TakeEntry());
  if (::mkdirat(parent, name.c_str(), mode) != 0) return WritingFailed(name);
  TRY(Descend(steps, name, steps.back().lower_hidden || over_whiteout));
  int made = steps.back().fd.get();
  if ((mode & 07000) != 0 && ::fchmod(made, mode) != 0) return WritingFailed(name);
  std::string path;
  for (const Step& step : steps) path = Join(path, step.name);
  if (over_whiteout) TRY(MakeOpaque(made, path));
  borrowed_.insert(path);
  directory_times_[std::move(path)] = below ? lower.mtime : timespec{};
  return Ok();
}

Result<Fd> LayerWriter::LinkDirectory(const LayerPath& target, struct stat& st) {
  std::string parent = target.parent.empty() ? "." : target.parent;
  auto look = [&](int directory) {
    return ::fstatat(directory, target.leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  };
  Result<Fd> fd = sys::OpenInRoot(root_.get(), parent, O_PATH | O_DIRECTORY);
  if (fd.ok() && look(fd.value().get()) && !S_ISCHR(st.st_mode)) return fd;
  if (fd.ok() && S_ISCHR(st.st_mode))
    return BadEntry(target.leaf, "a hard link to a file that does not exist");
  std::vector<Step> steps = TRY(Resolve(parent, Missing::kFail));
  int directory = steps.back().fd.get();
  if (!look(directory)) {
    LowerEntry lower = TRY(LookBelow(steps, target.leaf));
    TRY(CopyUp(directory, target.leaf, std::move(lower)));
    std::string path;
    for (const Step& step : steps) path = Join(path, step.name);
    borrowed_.insert(Join(path, target.leaf));
    if (!look(directory)) return WritingFailed(target.leaf);
  }
  return std::move(steps.back().fd);
}

// A hard link needs its target in the same layer: this is what overlayfs does when one is made.
Status LayerWriter::CopyUp(int directory, const std::string& leaf, LowerEntry lower) {
  timespec times[2] = {{0, UTIME_OMIT}, lower.mtime};
  if (lower.kind == LowerEntry::Kind::kSymlink) {
    if (::symlinkat(lower.link.c_str(), directory, leaf.c_str()) != 0) return WritingFailed(leaf);
    return Ok();
  }
  if (lower.kind == LowerEntry::Kind::kDirectory)
    return BadEntry(leaf, "a hard link to a directory");
  if (lower.kind != LowerEntry::Kind::kFile)
    return BadEntry(leaf, "a hard link to a file that does not exist");
  Fd file =
      TRY(sys::OpenAt(directory, leaf, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, lower.mode & 0777));
  std::string chunk(256 << 10, '\0');
  for (;;) {
    ssize_t n = ::read(lower.file.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return WritingFailed(leaf);
    if (n == 0) break;
    TRY(budget_.TakeBytes(n));
    TRY(sys::WriteAll(file.get(), std::string_view(chunk).substr(0, static_cast<size_t>(n))));
    hash_.Update(std::string_view(chunk).substr(0, static_cast<size_t>(n)));
  }
  struct stat st {};
  if (::fstat(file.get(), &st) != 0) return WritingFailed(leaf);
  content_hashes_[st.st_ino] = hash_.Take();
  std::string capability(1024, '\0');
  ssize_t n =
      ::fgetxattr(lower.file.get(), "security.capability", capability.data(), capability.size());
  if (n > 0) {
    (void)::fsetxattr(file.get(), "security.capability", capability.data(), static_cast<size_t>(n),
                      0);
  }
  if (::fchmod(file.get(), lower.mode & 07777) != 0) return WritingFailed(leaf);
  if (::futimens(file.get(), times) != 0) return WritingFailed(leaf);
  return Ok();
}

}  // namespace image
