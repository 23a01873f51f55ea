// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/tree_receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/sys.h"
#include "base/tree.h"
#include "session/transfer/whiteout.h"

namespace session {
namespace {

constexpr int kMakes = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

Error Bad(const std::string& path, const std::string& why) {
  return {Code::kInvalid, path + ": " + why};
}

Error WriteFailed(const std::string& path) {
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return {Code::kIo, "writing " + path + ": no room is left", "--disk SIZE"};
  }
  return Errno("writing " + path);
}

// Components that name something, none of them "." or "..".
bool IsPlain(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    size_t slash = path.find('/');
    std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;  // It ended in a slash.
}

// "./a" -> "a", "./" -> "".
void TakeOffDot(std::string& path) {
  if (path == ".") path.clear();
  if (path.starts_with("./")) path.erase(0, 2);
}

// Makes a directory that the archive does not mention, and those above it.
Result<Fd> MakeDirectory(int directory, const std::string& path) {
  constexpr mode_t kMode = 0755;
  const size_t slash = path.rfind('/');
  Fd above;
  if (slash != std::string::npos) {
    const std::string parent = path.substr(0, slash);
    Result<Fd> there = sys::OpenBeneath(directory, parent, O_PATH | O_DIRECTORY);
    const bool absent = !there.ok() && there.error().os_error == ENOENT;
    above = TRY(absent ? MakeDirectory(directory, parent) : std::move(there));
  }
  const int at = above.valid() ? above.get() : directory;
  const std::string leaf = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (::mkdirat(at, leaf.c_str(), kMode) != 0) return Errno("mkdir " + path);
  return sys::OpenAt(at, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

// While it lives, files get the mode that is asked for.
class NoUmask {
 public:
  NoUmask() : before_(::umask(0)) {}
  NoUmask(const NoUmask&) = delete;
  NoUmask& operator=(const NoUmask&) = delete;
  ~NoUmask() { ::umask(before_); }
  mode_t before() const { return before_; }

 private:
  mode_t before_;
};

std::string NameOf(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

// Returns a file in `parent` that is gone if this process is killed before it gives it a name. Not
// valid where the disk has no such files, or where no name could be given, for want of /proc.
Fd OpenNameless(int parent, mode_t mode) {
  Result<Fd> made = sys::OpenAt(parent, ".", O_TMPFILE | O_WRONLY, mode);
  return made.ok() && sys::Exists(NameOf(made.value())) ? std::move(made).value() : Fd();
}

}  // namespace

Status TreeReceiver::Receive(image::TarReader& tar) {
  NoUmask exact;
  if (kind_ == Kind::kFiles) mask_ = exact.before();
  for (;;) {
    std::optional<image::TarEntry> entry = TRY(tar.Next());
    if (!entry) return FinishDirectories();
    if (++entries_ > limits_.entries_max) {
      return Error{Code::kInvalid,
                   "more than " + std::to_string(limits_.entries_max) + " files and directories"};
    }
    if (kind_ == Kind::kTree) {
      TakeOffDot(entry->path);
      if (entry->type == image::TarType::kHardlink) TakeOffDot(entry->link);
      if (entry->path.empty()) continue;  // The directory itself.
    }
    if (entry->path.ends_with('/')) entry->path.pop_back();
    TRY(Write(tar, *entry));
  }
}

Result<Spot> TreeReceiver::Find(const std::string& path) const {
  if (!IsPlain(path)) return Bad(path, "a path that the archive must not hold");
  std::optional<Spot> spot = route_(path);
  if (!spot) return Bad(path, "a path that the archive must not hold");
  return std::move(*spot);
}

Result<int> TreeReceiver::Parent(const Spot& spot, std::string* leaf) {
  size_t slash = spot.path.rfind('/');
  *leaf = slash == std::string::npos ? spot.path : spot.path.substr(slash + 1);
  if (slash == std::string::npos) return spot.directory;
  std::string above = spot.path.substr(0, slash);
  if (!parent_.valid() || parent_of_ != spot.directory || above != parent_path_) {
    Result<Fd> opened = sys::OpenBeneath(spot.directory, above, O_PATH | O_DIRECTORY);
    if (!opened.ok() && opened.error().os_error == ENOENT && kind_ == Kind::kTree) {
      opened = MakeDirectory(spot.directory, above);
    }
    parent_ = TRY(std::move(opened).Context(above));
    parent_of_ = spot.directory;
    parent_path_ = std::move(above);
  }
  return parent_.get();
}

mode_t TreeReceiver::ModeOf(const image::TarEntry& entry) const {
  return entry.mode &
         (kind_ == Kind::kLayer && entry.type == image::TarType::kDirectory ? 01777 : 0777) &
         ~mask_;
}

// Writes one entry. In a layer, the place itself has no leaf.
Status TreeReceiver::Write(image::TarReader& tar, image::TarEntry& entry) {
  Spot spot = TRY(Find(entry.path));
  if (kind_ == Kind::kFiles) entry.path = spot.path;  // The name is for people.
  if (spot.path.empty()) {
    return entry.type == image::TarType::kDirectory
               ? Ok()
               : Status(Bad(entry.path, "a place that must be a directory"));
  }
  std::string leaf;
  int parent = TRY(Parent(spot, &leaf));
  bool layer = kind_ == Kind::kLayer;
  if (layer && leaf == kOpaqueName) return Clear(parent, entry.path);
  if (layer && leaf.starts_with(kWhiteoutPrefix)) {
    std::string name = leaf.substr(kWhiteoutPrefix.size());
    if (!IsPlain(name)) return Bad(entry.path, "an invalid whiteout");
    Status removed = sys::RemoveTree(parent, name);
    return !removed.ok() && sys::IsAbsent(removed.error()) ? Ok() : std::move(removed);
  }
  switch (entry.type) {
    case image::TarType::kDirectory:
      return WriteDirectory(spot, parent, leaf, entry);
    case image::TarType::kFile:
      return WriteFile(parent, leaf, entry, tar);
    case image::TarType::kSymlink:
    case image::TarType::kHardlink:
      return WriteLink(parent, leaf, entry);
    case image::TarType::kFifo:
      if (kind_ == Kind::kFiles) break;
      TRY(Remove(parent, leaf));
      ++received_.files;
      if (::mkfifoat(parent, leaf.c_str(), ModeOf(entry)) != 0) return WriteFailed(entry.path);
      return Ok();
    case image::TarType::kDevice:
      break;
  }
  return Bad(entry.path, "neither a file, a directory nor a symbolic link");
}

// Whether a file of a kFiles may take the place of what stands at `leaf`, if anything.
Status TreeReceiver::CheckReplaceable(int parent, const std::string& leaf) const {
  struct stat st {};
  if (::fstatat(parent, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return Ok();
  if (S_ISDIR(st.st_mode)) return Bad(leaf, "a directory is in the way of a file");
  if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) return Ok();
  return Bad(leaf, "a device, pipe or socket is not replaced by a file");
}

// Removes what stands at `leaf`, for something to take its place.
Status TreeReceiver::Remove(int parent, const std::string& leaf) const {
  if (kind_ == Kind::kFiles) TRY(CheckReplaceable(parent, leaf));
  if (::unlinkat(parent, leaf.c_str(), 0) == 0 || errno == ENOENT) return Ok();
  if (errno != EISDIR) return WriteFailed(leaf);
  if (kind_ != Kind::kLayer) return Bad(leaf, "a directory is in the way of a file");
  return sys::RemoveTree(parent, leaf);
}

Status TreeReceiver::Clear(int parent, const std::string& path) const {
  for (const std::string& name : TRY(sys::DirectoryNames(parent).Context(path))) {
    TRY(sys::RemoveTree(parent, name).Context(path));
  }
  return Ok();
}

Status TreeReceiver::WriteDirectory(const Spot& spot, int parent, const std::string& leaf,
                                    const image::TarEntry& entry) {
  struct stat st {};
  bool there = ::fstatat(parent, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISDIR(st.st_mode)) {
    if (kind_ != Kind::kLayer) return Bad(leaf, "a file is in the way of a directory");
    TRY(Remove(parent, leaf));
    there = false;
  }
  if (!there && ::mkdirat(parent, leaf.c_str(), 0700) != 0) return WriteFailed(entry.path);
  // Until the end it can be written to.
  if (there) TRY(sys::ChangeDirectoryMode(parent, leaf, (st.st_mode & 07777) | S_IRWXU));
  if (!entry.xattrs.empty()) {
    Fd made = TRY(sys::OpenAt(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    for (const auto& [name, value] : entry.xattrs) {
      if (!name.starts_with("user.") || name.starts_with("user.overlay.")) continue;
      (void)::fsetxattr(made.get(), name.c_str(), value.data(), value.size(), 0);
    }
  }
  directories_.push_back({spot, ModeOf(entry), {entry.mtime_s, entry.mtime_ns}});
  return Ok();
}

Status TreeReceiver::WriteFile(int parent, const std::string& leaf, const image::TarEntry& entry,
                               image::TarReader& tar) {
  if (entry.size > limits_.bytes_max - received_.bytes) {
    return Error{
        kind_ == Kind::kFiles ? Code::kInvalid : Code::kUnsupported,
        entry.path + ": the limit of " + std::to_string(limits_.bytes_max) + " bytes is exceeded"};
  }
  received_.bytes += entry.size;
  ++received_.files;
  if (entry.sparse) return Bad(entry.path, "a sparse file");
  if (kind_ != Kind::kFiles) {
    Fd file = TRY(MakeFile(parent, leaf, entry));
    return FillFile(file.get(), entry, tar);
  }
  TRY(CheckReplaceable(parent, leaf));
  Fd file = OpenNameless(parent, ModeOf(entry));
  const bool nameless = file.valid();
  if (nameless) TRY(FillFile(file.get(), entry, tar));
  const std::string part = TRY(MakePart(leaf, entry, [&](const std::string& name) {
    if (nameless) {
      return ::linkat(AT_FDCWD, NameOf(file).c_str(), parent, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    }
    Result<Fd> made = sys::OpenAt(parent, name, kMakes, ModeOf(entry));
    if (made.ok()) {
      file = std::move(made).value();
    } else {
      errno = made.error().os_error;
    }
    return file.valid();
  }));
  Status filled = nameless ? Ok() : FillFile(file.get(), entry, tar);
  if (filled.ok() && ::renameat(parent, part.c_str(), parent, leaf.c_str()) != 0) {
    filled = WriteFailed(entry.path);
  }
  if (!filled.ok()) (void)::unlinkat(parent, part.c_str(), 0);
  return filled;
}

// Makes the file that becomes `leaf` when it is whole, by `make`, which sets errno, and returns its
// name. One of that name that is there already stays.
Result<std::string> TreeReceiver::MakePart(
    const std::string& leaf, const image::TarEntry& entry,
    const std::function<bool(const std::string& name)>& make) const {
  constexpr size_t kStemMax = 240;  // A name has at most 255 bytes.
  constexpr int kTries = 100;
  const std::string stem = leaf.substr(0, kStemMax) + ".part";
  for (int i = 0; i < kTries; ++i) {
    std::string name = i == 0 ? stem : stem + std::to_string(i);
    if (make(name)) return name;
    if (errno != EEXIST) break;
  }
  return WriteFailed(entry.path);
}

Result<Fd> TreeReceiver::MakeFile(int parent, const std::string& leaf,
                                  const image::TarEntry& entry) const {
  Result<Fd> made = sys::OpenAt(parent, leaf, kMakes, ModeOf(entry));
  if (!made.ok() && made.error().os_error == EEXIST) {
    TRY(Remove(parent, leaf));
    made = sys::OpenAt(parent, leaf, kMakes, ModeOf(entry));
  }
  if (made.ok()) return made;
  errno = made.error().os_error;
  return WriteFailed(entry.path);
}

Status TreeReceiver::FillFile(int file, const image::TarEntry& entry, image::TarReader& tar) const {
  for (;;) {
    image::TarPiece piece = TRY(tar.Read());
    if (piece.bytes.empty()) break;
    Status written = sys::WriteAll(file, piece.bytes);
    if (!written.ok()) {
      errno = written.error().os_error;
      return WriteFailed(entry.path);
    }
  }
  if (kind_ == Kind::kLayer) {
    for (const auto& [name, value] : entry.xattrs) {
      if (!name.starts_with("user.") || name.starts_with("user.overlay.")) continue;
      (void)::fsetxattr(file, name.c_str(), value.data(), value.size(), 0);
    }
  }
  timespec times[2] = {{0, UTIME_OMIT}, {entry.mtime_s, entry.mtime_ns}};
  return ::futimens(file, times) == 0 ? Ok() : Status(WriteFailed(entry.path));
}

Status TreeReceiver::WriteLink(int parent, const std::string& leaf, const image::TarEntry& entry) {
  TRY(Remove(parent, leaf));
  ++received_.files;
  if (entry.type == image::TarType::kSymlink) {
    timespec times[2] = {{0, UTIME_OMIT}, {entry.mtime_s, entry.mtime_ns}};
    if (::symlinkat(entry.link.c_str(), parent, leaf.c_str()) != 0) return WriteFailed(entry.path);
    (void)::utimensat(parent, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW);
    return Ok();
  }
  if (kind_ == Kind::kFiles) return Bad(entry.path, "a hard link");
  Spot target = TRY(Find(entry.link));
  size_t slash = target.path.rfind('/');
  std::string name = slash == std::string::npos ? target.path : target.path.substr(slash + 1);
  Fd above;
  if (slash != std::string::npos) {
    above =
        TRY(sys::OpenBeneath(target.directory, target.path.substr(0, slash), O_PATH | O_DIRECTORY));
  }
  int from = above.valid() ? above.get() : target.directory;
  struct stat st {};
  if (::fstatat(from, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
    return Bad(entry.path, "a hard link to something that is not a file");
  }
  if (::linkat(from, name.c_str(), parent, leaf.c_str(), 0) != 0) return WriteFailed(entry.path);
  return Ok();
}

// Sets the times of directories, which writing into them changed; the innermost first.
Status TreeReceiver::FinishDirectories() {
  for (size_t i = directories_.size(); i-- > 0;) {
    const Directory& directory = directories_[i];
    Result<Fd> opened =
        sys::OpenBeneath(directory.spot.directory, directory.spot.path, O_RDONLY | O_DIRECTORY);
    if (!opened.ok()) continue;  // A later entry replaced it.
    timespec times[2] = {{0, UTIME_OMIT}, directory.mtime};
    (void)::futimens(opened.value().get(), times);
    if (::fchmod(opened.value().get(), directory.mode) != 0) {
      return WriteFailed(directory.spot.path);
    }
  }
  return Ok();
}

}  // namespace session
