// SPDX-License-Identifier: Apache-2.0
#include "change/tree_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/sys.h"

namespace change {
namespace {

// O_NONBLOCK: if this were a named pipe after all, opening it must not wait.
constexpr int kReadFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

Result<Fd> OpenReadable(int root, const std::string& path, int flags, Unreadable unreadable) {
  Result<Fd> fd = sys::OpenBeneath(root, path, flags);
  if (fd.ok() || unreadable == Unreadable::kFail) return fd;
  Result<Fd> place = sys::OpenBeneath(root, path, O_PATH | O_NOFOLLOW);
  struct stat st {};
  if (!place.ok() || ::fstat(place.value().get(), &st) != 0) return fd;
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return fd;
  mode_t more = S_ISDIR(st.st_mode) ? S_IRWXU : S_IRUSR;
  if ((st.st_mode & more) == more) return fd;
  // An O_PATH descriptor cannot be given to fchmod; its name in /proc leads to the same inode.
  std::string name = "/proc/self/fd/" + std::to_string(place.value().get());
  if (::chmod(name.c_str(), (st.st_mode & 07777) | more) != 0) return fd;
  return sys::OpenBeneath(root, path, flags);
}

// Fills `buffer` from `offset` as far as the file goes.
Result<size_t> ReadAt(int fd, char* buffer, size_t size, int64_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = ::pread(fd, buffer + done, size - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno("pread");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

}  // namespace

int GitMode(unsigned int stat_mode) {
  if (S_ISLNK(stat_mode)) return 0120000;
  if (!S_ISREG(stat_mode)) return 0;
  return (stat_mode & S_IXUSR) != 0 ? 0100755 : 0100644;
}

Result<Fd> OpenDirectory(int root, const std::string& path, Unreadable unreadable) {
  return OpenReadable(root, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                      unreadable);
}

Result<TreeFile> TreeFile::Open(int root, const std::string& path, Unreadable unreadable) {
  Result<Fd> place = sys::OpenBeneath(root, path, O_PATH | O_NOFOLLOW);
  if (!place.ok()) {
    if (sys::IsAbsent(place.error())) return Error{Code::kNotFound, "no such file"};
    return std::move(place).error();
  }
  struct stat st {};
  if (::fstat(place.value().get(), &st) != 0) return Errno("fstat");
  TreeFile file;
  file.facts_ = st;
  file.mode_ = GitMode(st.st_mode);
  if (S_ISLNK(st.st_mode)) {
    char target[PATH_MAX];
    ssize_t n = ::readlinkat(place.value().get(), "", target, sizeof target);
    if (n < 0) return Errno("readlinkat");
    file.bytes_.assign(target, static_cast<size_t>(n));
    file.size_ = n;
  } else if (S_ISREG(st.st_mode)) {
    file.fd_ = TRY(OpenReadable(root, path, kReadFlags, unreadable));
    struct stat opened {};
    if (::fstat(file.fd_.get(), &opened) != 0) return Errno("fstat");
    if (!S_ISREG(opened.st_mode)) return Error{Code::kIo, "changed while being opened"};
    file.size_ = opened.st_size;
  }
  return file;
}

TreeFile::TreeFile(int mode, std::string bytes)
    : bytes_(std::move(bytes)), mode_(mode), size_(static_cast<int64_t>(bytes_.size())) {}

Result<std::string> TreeFile::Read(int64_t bytes_max) const {
  if (size_ > bytes_max) {
    return Error{Code::kInvalid, "larger than " + std::to_string(bytes_max) + " bytes"};
  }
  if (!fd_.valid()) return bytes_;
  std::string bytes(static_cast<size_t>(size_), '\0');
  size_t got = TRY(ReadAt(fd_.get(), bytes.data(), bytes.size(), 0));
  bytes.resize(got);
  return bytes;
}

Result<bool> TreeFile::SameBytes(const TreeFile& other) const {
  if (size_ != other.size_) return false;
  if (!fd_.valid() || !other.fd_.valid()) return TRY(Read(size_)) == TRY(other.Read(size_));
  char mine[16384];
  char theirs[16384];
  for (int64_t offset = 0; offset < size_;) {
    size_t got = TRY(ReadAt(fd_.get(), mine, sizeof mine, offset));
    size_t other_got = TRY(ReadAt(other.fd_.get(), theirs, sizeof theirs, offset));
    if (got != other_got || std::memcmp(mine, theirs, got) != 0) return false;
    if (got == 0) break;
    offset += static_cast<int64_t>(got);
  }
  return true;
}

}  // namespace change
