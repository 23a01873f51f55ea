// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/layer_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string_view>

#include "base/sys.h"
#include "base/tree.h"

namespace image {
namespace {

constexpr size_t kXattrBytesMax = 64 << 10;  // The kernel's own bound.
constexpr size_t kLinkBytesMax = 4095;

// The one user of the sandbox stands for all users of the image, root among them, who may read
// every file and enter every directory.
mode_t FileMode(mode_t mode) { return (mode & 07777) | S_IRUSR; }
mode_t DirectoryMode(mode_t mode) { return (mode & 07777) | S_IRWXU; }

bool Keeps(std::string_view xattr) {
  // An image could forge the marks that overlayfs takes as its own.
  if (xattr.starts_with("user.overlay.")) return false;
  return xattr.starts_with("user.") || xattr == "security.capability";
}

}  // namespace

Error WritingFailed(const std::string& path, int saved_errno) {
  Error error = Errno("writing " + path, saved_errno);
  error.code = Code::kIo;
  if (saved_errno == ENOSPC || saved_errno == EDQUOT) error.hint = "agentic-ci image prune";
  return error;
}

Status LayerBudget::TakeBytes(int64_t bytes) {
  if (bytes_left.fetch_sub(bytes) >= bytes) return Ok();
  return Error{Code::kInvalid, "the unpacked image exceeds the size limit"};
}

Status LayerBudget::TakeEntry() {
  if (entries_left.fetch_sub(1) >= 1) return Ok();
  return Error{Code::kInvalid, "the image exceeds the limit on entries"};
}

Status LayerBudget::TakeHoles(int64_t bytes) {
  if (holes_left.fetch_sub(bytes) >= bytes) return Ok();
  return Error{Code::kInvalid, "the image's sparse files have more than " +
                                   std::to_string(kHoleBytesMax >> 30) + " GiB of holes"};
}

Status LayerWriter::Write(TarReader& tar) {
  for (;;) {
    std::optional<TarEntry> entry = TRY(tar.Next());
    if (!entry) return FinishDirectories();
    TRY(WriteEntry(tar, *entry));
  }
}

Status LayerWriter::WriteEntry(TarReader& tar, const TarEntry& entry) {
  // Stored bytes were counted as they were unpacked; the holes of a sparse file were not.
  if (entry.sparse) TRY(budget_.TakeBytes(entry.size));
  TRY(budget_.TakeEntry());
  TRY(budget_.TakeHoles(entry.holes));
  LayerPath path = TRY(ParseLayerPath(entry.path));
  if (path.is_root()) return WriteRoot(entry);
  WhiteoutName whiteout = TRY(ParseWhiteout(path));
  if (whiteout.kind == Whiteout::kIgnored) return Ok();
  if (whiteout.kind != Whiteout::kNone) {
    bool plain = entry.type == TarType::kFile || entry.type == TarType::kHardlink;
    if (!plain || entry.size != 0)
      return BadEntry(entry.path, "a whiteout that is not an empty file");
    int parent = TRY(Parent(path.parent));
    return WriteWhiteout(parent, whiteout);
  }
  if (!entry.owned_by_root) Note(Left::kOwner, entry.path);
  if (entry.type == TarType::kDevice) {
    Note(Left::kDevice, entry.path);
    return Ok();
  }
  int parent = TRY(Parent(path.parent));
  switch (entry.type) {
    case TarType::kDirectory:
      return WriteDirectory(parent, path.leaf, entry);
    case TarType::kFile:
      return WriteFile(parent, path.leaf, entry, tar);
    case TarType::kSymlink:
      return WriteSymlink(parent, path.leaf, entry);
    case TarType::kHardlink:
      return WriteHardlink(parent, path.leaf, entry);
    case TarType::kFifo:
      return WriteFifo(parent, path.leaf, entry);
    case TarType::kDevice:
      break;
  }
  return Error{Code::kBug, "an entry of unknown type"};
}

Status LayerWriter::WriteRoot(const TarEntry& entry) {
  if (entry.type != TarType::kDirectory)
    return BadEntry(entry.path, "the root must be a directory");
  if (::fchmod(root_.get(), DirectoryMode(entry.mode)) != 0) return WritingFailed("/");
  SetXattrs(root_.get(), entry);
  directory_times_[""] = {entry.mtime_s, entry.mtime_ns};
  return Ok();
}

Status LayerWriter::WriteDirectory(int parent, const std::string& leaf, const TarEntry& entry) {
  mode_t mode = DirectoryMode(entry.mode);
  bool over_other = false;
  if (::mkdirat(parent, leaf.c_str(), mode) != 0) {
    struct stat st {};
    if (errno != EEXIST) return WritingFailed(entry.path);
    if (::fstatat(parent, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return WritingFailed(entry.path);
    over_other = !S_ISDIR(st.st_mode);
    if (over_other) {
      TRY(Clear(parent, leaf));
      if (::mkdirat(parent, leaf.c_str(), mode) != 0) return WritingFailed(entry.path);
    }
  }
  Fd fd = TRY(sys::OpenAt(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::fchmod(fd.get(), mode) != 0) return WritingFailed(entry.path);
  // The entry that stood here, a whiteout perhaps, hid what the lower layers have; so it stays
  // hidden.
  std::string real = Real(leaf);
  if (over_other) TRY(MakeOpaque(fd.get(), real));
  SetXattrs(fd.get(), entry);
  borrowed_.erase(real);
  directory_times_[std::move(real)] = {entry.mtime_s, entry.mtime_ns};
  return Ok();
}

Status LayerWriter::WriteFile(int parent, const std::string& leaf, const TarEntry& entry,
                              TarReader& tar) {
  mode_t mode = FileMode(entry.mode);
  int flags = (entry.sparse ? O_RDWR : O_WRONLY) | O_CREAT | O_EXCL | O_NOFOLLOW;
  Result<Fd> file = sys::OpenAt(parent, leaf, flags, mode & 0777);
  if (!file.ok() && file.error().os_error == EEXIST) {
    TRY(Clear(parent, leaf));
    file = sys::OpenAt(parent, leaf, flags, mode & 0777);
  }
  if (!file.ok()) return WritingFailed(entry.path, file.error().os_error);
  Fd fd = std::move(file).value();
  if (entry.size > 0) {
    uint64_t hash = TRY(WriteContent(fd.get(), entry, tar));
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) return WritingFailed(entry.path);
    content_hashes_[st.st_ino] = hash;
  }
  SetXattrs(fd.get(), entry);
  // Writing takes setuid away, so it is given after that.
  if ((mode & 07000) != 0 && ::fchmod(fd.get(), mode) != 0) return WritingFailed(entry.path);
  timespec times[2] = {{0, UTIME_OMIT}, {entry.mtime_s, entry.mtime_ns}};
  if (::futimens(fd.get(), times) != 0) return WritingFailed(entry.path);
  return Ok();
}

Result<uint64_t> LayerWriter::WriteContent(int file, const TarEntry& entry, TarReader& tar) {
  for (;;) {
    TarPiece piece = TRY(tar.Read());
    if (piece.bytes.empty()) break;
    if (!entry.sparse) hash_.Update(piece.bytes);
    while (!piece.bytes.empty()) {
      ssize_t n = ::pwrite(file, piece.bytes.data(), piece.bytes.size(), piece.offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return WritingFailed(entry.path);
      piece.bytes.remove_prefix(static_cast<size_t>(n));
      piece.offset += n;
    }
  }
  if (!entry.sparse) return hash_.Take();
  if (::ftruncate(file, entry.size) != 0) return WritingFailed(entry.path);
  return HashContent(file);
}

Status LayerWriter::WriteSymlink(int parent, const std::string& leaf, const TarEntry& entry) {
  if (entry.link.empty() || entry.link.size() > kLinkBytesMax) {
    return BadEntry(entry.path, "a symbolic link with a target of " +
                                    std::to_string(entry.link.size()) + " bytes");
  }
  int rc = ::symlinkat(entry.link.c_str(), parent, leaf.c_str());
  if (rc != 0 && errno == EEXIST) {
    TRY(Clear(parent, leaf));
    rc = ::symlinkat(entry.link.c_str(), parent, leaf.c_str());
  }
  if (rc != 0) return WritingFailed(entry.path);
  timespec times[2] = {{0, UTIME_OMIT}, {entry.mtime_s, entry.mtime_ns}};
  if (::utimensat(parent, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return WritingFailed(entry.path);
  return Ok();
}

Status LayerWriter::WriteHardlink(int parent, const std::string& leaf, const TarEntry& entry) {
  LayerPath target = TRY(ParseLinkTarget(entry.link));
  struct stat st {};
  Fd directory = TRY(LinkDirectory(target, st));
  if (S_ISDIR(st.st_mode)) return BadEntry(entry.path, "a hard link to a directory");
  struct stat existing {};
  if (::fstatat(parent, leaf.c_str(), &existing, AT_SYMLINK_NOFOLLOW) == 0) {
    if (existing.st_ino == st.st_ino) {
      struct stat here {};
      struct stat there {};
      if (::fstat(parent, &here) != 0 || ::fstat(directory.get(), &there) != 0) {
        return WritingFailed(entry.path);
      }
      if (here.st_ino == there.st_ino && leaf == target.leaf) {
        return BadEntry(entry.path, "a hard link to itself");
      }
      borrowed_.erase(Real(leaf));
      return Ok();  // Linked before.
    }
    TRY(Clear(parent, leaf));
  }
  if (::linkat(directory.get(), target.leaf.c_str(), parent, leaf.c_str(), 0) != 0) {
    // The target stood inside of what was just cleared away.
    if (errno == ENOENT) return BadEntry(entry.path, "a hard link to a file that does not exist");
    return WritingFailed(entry.path);
  }
  return Ok();
}

Status LayerWriter::WriteFifo(int parent, const std::string& leaf, const TarEntry& entry) {
  mode_t mode = S_IFIFO | (FileMode(entry.mode) & 0777);
  int rc = ::mknodat(parent, leaf.c_str(), mode, 0);
  if (rc != 0 && errno == EEXIST) {
    TRY(Clear(parent, leaf));
    rc = ::mknodat(parent, leaf.c_str(), mode, 0);
  }
  if (rc != 0) return WritingFailed(entry.path);
  timespec times[2] = {{0, UTIME_OMIT}, {entry.mtime_s, entry.mtime_ns}};
  if (::utimensat(parent, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return WritingFailed(entry.path);
  return Ok();
}

// A whiteout is about the lower layers alone: what this layer has under that name stays.
Status LayerWriter::WriteWhiteout(int parent, const WhiteoutName& whiteout) {
  if (whiteout.kind == Whiteout::kOpaque) return MakeOpaque(parent, parent_real_);
  struct stat st {};
  std::string real = Real(whiteout.hidden);
  if (::fstatat(parent, whiteout.hidden.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(st.st_mode)) {
      Fd fd = TRY(sys::OpenAt(parent, whiteout.hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(MakeOpaque(fd.get(), real));
    }
    if (!borrowed_.contains(real)) return Ok();
    int flags = S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0;
    if (::unlinkat(parent, whiteout.hidden.c_str(), flags) != 0) {
      return errno == ENOTEMPTY ? Ok() : Status(WritingFailed(whiteout.hidden));
    }
    borrowed_.erase(real);
  } else if (errno != ENOENT) {
    return WritingFailed(whiteout.hidden);
  }
  // Where nothing of the lower layers shows, overlayfs would list a whiteout as a file.
  if (lower_ == nullptr) {
    reached_below_ = true;
    return Ok();
  }
  bool hidden = TRY(BeneathOpaque(parent));
  if (hidden) return Ok();
  if (::mknodat(parent, whiteout.hidden.c_str(), S_IFCHR, ::makedev(0, 0)) != 0) {
    return WritingFailed(whiteout.hidden);
  }
  return Ok();
}

Status LayerWriter::MakeOpaque(int directory, const std::string& path) {
  Fd fd = TRY(sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));  // It may be O_PATH.
  char opaque = 0;
  if (::fgetxattr(fd.get(), kOpaqueXattr, &opaque, 1) == 1) return Ok();
  if (::fsetxattr(fd.get(), kOpaqueXattr, "y", 1, 0) != 0) {
    Error error = Errno("user attributes in the image store");
    if (error.os_error == ENOTSUP) error.code = Code::kUnsupported;
    return error;
  }
  return DropLower(fd.get(), path);
}

Status LayerWriter::DropLower(int directory, const std::string& path) {
  std::vector<std::string> names = TRY(sys::DirectoryNames(directory));
  for (const std::string& name : names) {
    std::string real = path.empty() ? name : path + "/" + name;
    struct stat st {};
    if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return WritingFailed(name);
    bool folder = S_ISDIR(st.st_mode);
    if (folder) {
      Fd fd = TRY(sys::OpenAt(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(DropLower(fd.get(), real));
    }
    bool borrowed = borrowed_.contains(real);
    if (!S_ISCHR(st.st_mode) && !borrowed) continue;
    if (::unlinkat(directory, name.c_str(), folder ? AT_REMOVEDIR : 0) != 0) {
      if (errno == ENOTEMPTY) continue;  // The layer has something in it.
      return WritingFailed(name);
    }
    borrowed_.erase(real);
    parent_known_ = false;
  }
  return Ok();
}

Result<bool> LayerWriter::BeneathOpaque(int directory) {
  struct stat root {};
  if (::fstat(root_.get(), &root) != 0) return WritingFailed("/");
  Fd at = TRY(sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  for (;;) {
    char opaque = 0;
    if (::fgetxattr(at.get(), kOpaqueXattr, &opaque, 1) == 1) return true;
    struct stat st {};
    if (::fstat(at.get(), &st) != 0) return WritingFailed("/");
    if (st.st_ino == root.st_ino) return false;
    at = TRY(sys::OpenAt(at.get(), "..", O_RDONLY | O_DIRECTORY));
  }
}

std::string LayerWriter::Real(const std::string& leaf) const {
  return parent_real_.empty() ? leaf : parent_real_ + "/" + leaf;
}

Status LayerWriter::Clear(int parent, const std::string& leaf) {
  parent_known_ = false;  // It may have been a part of that path.
  std::string real = Real(leaf);
  borrowed_.erase(real);
  borrowed_.erase(borrowed_.lower_bound(real + "/"),
                  borrowed_.lower_bound(real + "0"));  // Beneath.
  return sys::RemoveTree(parent, leaf);
}

void LayerWriter::SetXattrs(int fd, const TarEntry& entry) {
  for (const auto& [name, value] : entry.xattrs) {
    // Every file of a Fedora image has a label; it is not needed.
    if (name == "security.selinux") continue;
    bool kept = Keeps(name) && value.size() <= kXattrBytesMax &&
                ::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0;
    if (!kept) Note(Left::kXattr, entry.path);
  }
}

Status LayerWriter::FinishDirectories() {
  for (const auto& [path, mtime] : directory_times_) {
    // An entry that took the place of a directory since then has its own time.
    std::string name = path.empty() ? "." : path;
    Result<Fd> fd = sys::OpenBeneath(root_.get(), name, O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) continue;
    timespec times[2] = {{0, UTIME_OMIT}, mtime};
    if (::futimens(fd.value().get(), times) != 0) return WritingFailed(path);
  }
  return Ok();
}

void LayerWriter::Note(Left kind, const std::string& path) {
  Noted& noted = left_out_[kind];
  if (noted.count++ == 0) noted.first = path.substr(0, 256);
}

std::vector<std::string> LayerWriter::Warnings() const {
  std::vector<std::string> warnings;
  for (const auto& [kind, noted] : left_out_) {
    std::string what = kind == Left::kDevice ? "device nodes are left out"
                       : kind == Left::kOwner
                           ? "entries of users other than root belong to the sandbox's "
                             "single user, like all others"
                           : "extended attributes are left out";
    warnings.push_back(std::to_string(noted.count) + " " + what + ", the first of " + noted.first);
  }
  return warnings;
}

}  // namespace image
