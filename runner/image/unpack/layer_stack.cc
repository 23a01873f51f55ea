// SPDX-License-Identifier: Apache-2.0
#include "image/unpack/layer_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"

namespace image {
namespace {

bool IsOpaque(int directory) {
  char opaque = 0;
  return ::fgetxattr(directory, kOpaqueXattr, &opaque, 1) == 1;
}

Result<LowerEntry> Describe(int directory, const std::string& name, const struct stat& st) {
  LowerEntry entry;
  entry.mode = st.st_mode & 07777;
  entry.mtime = st.st_mtim;
  entry.kind = LowerEntry::Kind::kOther;
  if (S_ISCHR(st.st_mode)) entry.kind = LowerEntry::Kind::kAbsent;  // A whiteout.
  if (S_ISDIR(st.st_mode)) entry.kind = LowerEntry::Kind::kDirectory;
  if (S_ISLNK(st.st_mode)) {
    char target[PATH_MAX];
    ssize_t n = ::readlinkat(directory, name.c_str(), target, sizeof target);
    if (n < 0) return Errno("readlinkat " + name);
    entry.kind = LowerEntry::Kind::kSymlink;
    entry.link.assign(target, static_cast<size_t>(n));
  }
  if (S_ISREG(st.st_mode)) {
    entry.kind = LowerEntry::Kind::kFile;
    entry.file = TRY(sys::OpenAt(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  }
  return entry;
}

// Returns the directories of that name in the directories `above`.
Result<std::vector<Fd>> Enter(const std::vector<Fd>& above, const std::string& name) {
  std::vector<Fd> inside;
  for (const Fd& directory : above) {
    Result<Fd> fd = sys::OpenAt(directory.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.ok() && fd.error().os_error == ENOENT) continue;
    if (!fd.ok()) break;  // Something else, which hides what is below.
    inside.push_back(std::move(fd).value());
    if (IsOpaque(inside.back().get())) break;
  }
  return inside;
}

}  // namespace

Result<LowerEntry> LayerStack::Look(const std::string& path) {
  std::vector<std::string_view> names = SplitPath(path);
  if (names.empty() || names.size() > kLayerDepthMax) return Error{Code::kInvalid, "no such path"};
  std::vector<Fd> above;
  for (const Fd& layer : layers_) {
    Fd root = TRY(sys::OpenAt(layer.get(), ".", O_RDONLY | O_DIRECTORY));
    above.push_back(std::move(root));
    if (IsOpaque(layer.get())) break;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name(names[i]);
    if (name == "." || name == "..") return Error{Code::kInvalid, "no such path"};
    if (i + 1 < names.size()) {
      above = TRY(Enter(above, name));
      continue;
    }
    for (const Fd& directory : above) {
      struct stat st {};
      if (::fstatat(directory.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
        return Describe(directory.get(), name, st);
      }
      if (errno != ENOENT) return Errno("fstatat " + name);
    }
  }
  return LowerEntry{};
}

}  // namespace image
