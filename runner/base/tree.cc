// SPDX-License-Identifier: Apache-2.0
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/sys.h"

namespace sys {

namespace {

// Returns names of a directory, until they take `bytes_max`; `*more` says whether there are others.
Result<std::vector<std::string>> SomeNames(int directory, size_t bytes_max, bool* more) {
  // A descriptor of its own: fdopendir takes it.
  Fd fd = TRY(sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* raw = ::fdopendir(fd.get());
  if (raw == nullptr) return Errno("fdopendir");
  (void)fd.Take();
  std::unique_ptr<DIR, int (*)(DIR*)> stream(raw, ::closedir);
  std::vector<std::string> names;
  size_t bytes = 0;
  *more = false;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    bytes += name.size() + sizeof(std::string);
    *more = bytes > bytes_max;
    if (*more) return names;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return Errno("readdir");
  return names;
}

}  // namespace

Result<std::vector<std::string>> DirectoryNames(int directory, size_t bytes_max) {
  bool more = false;
  std::vector<std::string> names = TRY(SomeNames(directory, bytes_max, &more));
  if (more) return Error{Code::kInvalid, "a directory has too many names"};
  std::sort(names.begin(), names.end());
  return names;
}

Status ChangeDirectoryMode(int parent, const std::string& name, mode_t mode) {
  const Fd place = TRY(sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  const std::string self = "/proc/self/fd/" + std::to_string(place.get());
  if (::chmod(self.c_str(), mode) == 0) return Ok();
  // A process whose root has no /proc is alone with its tree.
  if (errno == ENOENT && ::fchmodat(parent, name.c_str(), mode, 0) == 0) return Ok();
  return Errno("chmod " + name);
}

namespace {

// Opens a directory to empty it. Go's module cache and overlayfs's work directories have modes that
// keep their owner out.
Result<Fd> EnterOwned(int parent, const std::string& name) {
  struct stat st {};
  if (::fstatat(parent, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
      (st.st_mode & S_IRWXU) != S_IRWXU) {
    TRY(ChangeDirectoryMode(parent, name, S_IRWXU));
  }
  return sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// RemoveTree() of what lies in `parent` itself.
Status RemoveEntry(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), 0) == 0) return Ok();
  if (errno != EISDIR) return Errno("unlinkat " + name);
  // Two descriptors and no recursion, however deep the tree: the way back is "..", looked at.
  struct Level {
    std::string name;
    ino_t inode;
    std::vector<std::string> left;
    bool more = true;  // Names that were not read yet: an agent makes as many as its disk holds.
  };
  constexpr size_t kNameBytesMax = size_t{1} << 20;
  std::vector<Level> levels;
  Fd at = TRY(sys::OpenAt(parent, ".", O_RDONLY | O_DIRECTORY));
  auto enter = [&](const std::string& directory) -> Status {
    struct stat above {};
    if (::fstat(at.get(), &above) != 0) return Errno("fstat");
    Fd fd = TRY(EnterOwned(at.get(), directory));
    levels.push_back({directory, above.st_ino, {}});
    at = std::move(fd);
    return Ok();
  };
  TRY(enter(name));
  while (!levels.empty()) {
    Level& level = levels.back();
    if (level.left.empty() && level.more) {
      level.left = TRY(SomeNames(at.get(), kNameBytesMax, &level.more));
    }
    if (!level.left.empty()) {
      std::string inside = std::move(level.left.back());
      level.left.pop_back();
      if (::unlinkat(at.get(), inside.c_str(), 0) == 0) continue;
      if (errno != EISDIR) return Errno("unlinkat " + inside);
      TRY(enter(inside));
      continue;
    }
    Fd above = TRY(sys::OpenAt(at.get(), "..", O_RDONLY | O_DIRECTORY));
    struct stat st {};
    if (::fstat(above.get(), &st) != 0) return Errno("fstat");
    if (st.st_ino != level.inode) return Error{Code::kIo, level.name + " was moved"};
    at = std::move(above);
    if (::unlinkat(at.get(), level.name.c_str(), AT_REMOVEDIR) != 0) {
      return Errno("unlinkat " + level.name);
    }
    levels.pop_back();
  }
  return Ok();
}

}  // namespace

Status RemoveTree(int parent, const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return RemoveEntry(parent, path);
  Fd above = TRY(OpenBeneath(parent, path.substr(0, slash), O_RDONLY | O_DIRECTORY));
  return RemoveEntry(above.get(), path.substr(slash + 1));
}

}  // namespace sys
