// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/tree_sender.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/sys.h"
#include "base/tree.h"
#include "image/unpack/layer_listing.h"
#include "session/transfer/whiteout.h"

namespace session {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kXattrBytesMax = size_t{64} << 10;

std::vector<std::string> XattrNames(int fd) {
  std::vector<std::string> names;
  if (::flistxattr(fd, nullptr, 0) == 0) return names;
  std::string list(kXattrBytesMax, '\0');
  ssize_t n = ::flistxattr(fd, list.data(), list.size());
  for (size_t at = 0; n > 0 && at < static_cast<size_t>(n); at += names.back().size() + 1) {
    names.emplace_back(list.c_str() + at);
  }
  return names;
}

// Reads the agent's own attributes; what overlayfs keeps in this name space is its own business.
std::vector<std::pair<std::string, std::string>> ReadXattrs(int fd) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& name : XattrNames(fd)) {
    if (!name.starts_with("user.") || name.starts_with("user.overlay.")) continue;
    std::string value(kXattrBytesMax, '\0');
    ssize_t n = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
    if (n < 0) continue;
    value.resize(static_cast<size_t>(n));
    found.emplace_back(name, std::move(value));
  }
  return found;
}

Error Shorter(const std::string& path) {
  return {Code::kIo, path + ": it became shorter while it was read"};
}

Error TooLarge(const std::string& path, int64_t bytes_max) {
  return {Code::kUnsupported, "with " + path + ", the files have more than " +
                                  std::to_string(bytes_max) + " bytes, holes in them included"};
}

bool IsOpaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, image::kOpaqueXattr, &value, 1) == 1 && value == 'y';
}

}  // namespace

image::TarEntry TreeSender::EntryOf(const struct stat& st, const std::string& path, int fd) const {
  image::TarEntry entry;
  entry.path = path;
  entry.mode = st.st_mode & 07777;
  entry.mtime_s = st.st_mtim.tv_sec;
  entry.mtime_ns = st.st_mtim.tv_nsec;
  if (kind_ == Kind::kLayer && fd >= 0) entry.xattrs = ReadXattrs(fd);
  return entry;
}

std::string TreeSender::Shown(const std::string& path) const {
  return shown_ + path.substr(root_.size());
}

void TreeSender::LeaveOut(const std::string& path, const std::string& why) {
  if (sent_.left_out++ > 0) return;
  sent_.first_left_out = Shown(path);
  if (kind_ == Kind::kFiles) sent_.first_left_out += ": " + why;
}

Status TreeSender::LeaveOutUnreadable(const std::string& path, const Error& error) {
  if (kind_ != Kind::kFiles || (error.os_error != EACCES && error.os_error != EPERM)) return error;
  LeaveOut(path, "permission denied");
  return Ok();
}

Status TreeSender::Send(const Fd& opened, const std::string& path, const std::string& shown) {
  linked_.clear();
  root_ = path;
  shown_ = shown.empty() ? path : shown;
  struct stat st {};
  if (::fstat(opened.get(), &st) != 0) return Errno("fstat " + shown_);
  image::TarEntry entry = EntryOf(st, path, opened.get());
  if (S_ISREG(st.st_mode)) return SendFile(opened.get(), st, std::move(entry));
  if (!S_ISDIR(st.st_mode)) {
    return Error{Code::kInvalid, shown_ + " is neither a file nor a directory"};
  }
  entry.type = image::TarType::kDirectory;
  TRY(tar_.Begin(entry));
  return SendDirectory(opened.get(), path, 0);
}

Status TreeSender::SendDirectory(int directory, const std::string& path, int depth) {
  if (depth == sys::kTreeDepthMax) return Error{Code::kInvalid, Shown(path) + ": too many levels"};
  if (kind_ == Kind::kLayer && IsOpaque(directory)) {
    image::TarEntry opaque;
    opaque.path = path + "/" + std::string(kOpaqueName);
    TRY(tar_.Begin(opaque));
  }
  for (const std::string& name : TRY(sys::DirectoryNames(directory))) {
    std::string inner = path + "/" + name;
    if (skipped_.contains(inner)) continue;
    if (inner.size() >= image::kTarPathBytesMax ||
        (kind_ == Kind::kLayer && name.starts_with(kWhiteoutPrefix))) {
      LeaveOut(inner, "its name cannot be kept");
      continue;
    }
    TRY(SendEntry(directory, name, inner, depth));
  }
  return Ok();
}

Status TreeSender::SendEntry(int directory, const std::string& name, const std::string& path,
                             int depth) {
  struct stat st {};
  if (::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Ok() : LeaveOutUnreadable(path, Errno(Shown(path)));
  }
  if (S_ISDIR(st.st_mode)) {
    Result<Fd> inner = sys::OpenAt(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!inner.ok()) {
      return LeaveOutUnreadable(path, Errno(Shown(path), inner.error().os_error));
    }
    image::TarEntry entry = EntryOf(st, path, inner.value().get());
    entry.type = image::TarType::kDirectory;
    TRY(tar_.Begin(entry));
    return SendDirectory(inner.value().get(), path, depth + 1);
  }
  if (S_ISREG(st.st_mode)) {
    // It may be something else by now, that one would wait for.
    Result<Fd> file = sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file.ok()) return LeaveOutUnreadable(path, Errno(Shown(path), file.error().os_error));
    int fd = file.value().get();
    if (::fstat(fd, &st) != 0) return Errno("fstat " + Shown(path));
    return SendFile(fd, st, EntryOf(st, path, fd));
  }
  image::TarEntry entry = EntryOf(st, path, -1);
  if (S_ISLNK(st.st_mode)) {
    entry.type = image::TarType::kSymlink;
    entry.link = sys::ReadLinkAt(directory, name).value_or("");
    if (entry.link.empty()) return Ok();  // Gone meanwhile.
    ++sent_.files;
    return tar_.Begin(entry);
  }
  if (kind_ == Kind::kLayer && S_ISFIFO(st.st_mode)) {
    entry.type = image::TarType::kFifo;
    ++sent_.files;
    return tar_.Begin(entry);
  }
  if (kind_ == Kind::kLayer && S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0)) {
    image::TarEntry whiteout;
    whiteout.path = path.substr(0, path.rfind('/') + 1) + std::string(kWhiteoutPrefix) + name;
    return tar_.Begin(whiteout);
  }
  LeaveOut(path, "neither a file, a directory nor a link");
  return Ok();
}

// Fills the buffer from the file's beginning; less is all of it, whatever size it is said to have:
// the kernel does not know that of its own files.
Result<size_t> TreeSender::ReadFirst(int file) {
  buffer_.resize(kReadBytes);
  size_t got = 0;
  while (got < kReadBytes) {
    ssize_t n = ::read(file, buffer_.data() + got, kReadBytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno("read");
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

Status TreeSender::SendFile(int file, const struct stat& st, image::TarEntry entry) {
  if (!S_ISREG(st.st_mode)) {
    LeaveOut(entry.path, "no longer a file");
    return Ok();
  }
  if (kind_ == Kind::kLayer && st.st_nlink > 1) {
    auto [first, fresh] = linked_.emplace(std::pair(st.st_dev, st.st_ino), entry.path);
    if (!fresh) {
      entry.type = image::TarType::kHardlink;
      entry.link = first->second;
      entry.xattrs.clear();
      ++sent_.files;
      return tar_.Begin(entry);
    }
  }
  if (st.st_size > bytes_max_ - sent_.bytes) return TooLarge(Shown(entry.path), bytes_max_);
  Result<size_t> first = ReadFirst(file);
  // The kernel's own, such as /proc/self/mem: as large as an address space, or unreadable.
  if (st.st_size == 0 && (!first.ok() || first.value() == kReadBytes)) {
    LeaveOut(entry.path, "not a file of a known size");
    return Ok();
  }
  size_t got = TRY(std::move(first).Context("reading " + Shown(entry.path)));
  if (got == kReadBytes) got = static_cast<size_t>(std::min<int64_t>(st.st_size, kReadBytes));
  entry.size = got < kReadBytes ? static_cast<int64_t>(got) : st.st_size;
  if (entry.size > bytes_max_ - sent_.bytes) return TooLarge(Shown(entry.path), bytes_max_);
  ++sent_.files;
  TRY(tar_.Begin(entry));
  for (int64_t left = entry.size; left > 0;) {
    TRY(tar_.Content(std::string_view(buffer_).substr(0, got)));
    left -= static_cast<int64_t>(got);
    sent_.bytes += static_cast<int64_t>(got);
    if (left == 0) break;
    auto want = static_cast<size_t>(std::min<int64_t>(left, kReadBytes));
    ssize_t n = ::read(file, buffer_.data(), want);
    if (n < 0 && errno != EINTR) return Errno("reading " + Shown(entry.path));
    if (n == 0) return Shorter(Shown(entry.path));
    got = n < 0 ? 0 : static_cast<size_t>(n);
  }
  return Ok();
}

}  // namespace session
