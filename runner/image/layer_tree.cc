// SPDX-License-Identifier: Apache-2.0
#include "image/layer_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/sys.h"

namespace image {

Result<std::vector<std::string>> DirectoryNames(int directory) {
  // A descriptor of its own: fdopendir takes it.
  Fd fd = TRY(sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* raw = ::fdopendir(fd.get());
  if (raw == nullptr) return Errno("fdopendir");
  (void)fd.Take();
  std::unique_ptr<DIR, int (*)(DIR*)> stream(raw, ::closedir);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return Errno("readdir");
  std::sort(names.begin(), names.end());
  return names;
}

Status RemoveTree(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), 0) == 0) return Ok();
  if (errno != EISDIR) return Errno("unlinkat " + name);
  {
    Fd fd = TRY(sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    std::vector<std::string> names = TRY(DirectoryNames(fd.get()));
    for (const std::string& inside : names) TRY(RemoveTree(fd.get(), inside));
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return Errno("unlinkat " + name);
  return Ok();
}

}  // namespace image
