// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"

namespace sandbox {
namespace {

PathKind Kind(const std::string& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return PathKind::kMissing;
  if (S_ISREG(st.st_mode)) return PathKind::kFile;
  if (S_ISDIR(st.st_mode)) return PathKind::kDirectory;
  if (S_ISLNK(st.st_mode)) return PathKind::kSymlink;
  return PathKind::kOther;
}

std::vector<std::string> List(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

HostView ReadHost(const std::string& checkout) {
  HostView host;
  host.uid = ::geteuid();
  host.gid = ::getegid();
  struct stat st {};
  if (::stat(checkout.c_str(), &st) == 0) {
    host.checkout_uid = st.st_uid;
    host.checkout_gid = st.st_gid;
  }
  host.kind = Kind;
  host.link = [](const std::string& path) { return sys::ReadLink(path).value_or(""); };
  host.list = List;
  return host;
}

}  // namespace sandbox
