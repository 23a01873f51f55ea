// SPDX-License-Identifier: Apache-2.0
#include "session/transfer/landing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"

namespace session {
namespace {

// mkdir -p, beneath `root`.
Result<Fd> MakeDirectories(int root, const std::string& path) {
  Result<Fd> there = sys::OpenInRoot(root, path.empty() ? "/" : path, O_PATH | O_DIRECTORY);
  if (there.ok() || !sys::IsAbsent(there.error()) || path.empty()) return there;
  size_t slash = path.rfind('/');
  Fd above = TRY(MakeDirectories(root, path.substr(0, slash)));
  std::string leaf = path.substr(slash + 1);
  if (::mkdirat(above.get(), leaf.c_str(), 0755) != 0) return Errno("mkdir " + path);
  return sys::OpenAt(above.get(), leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

Result<Landing> FindLanding(int root, const std::string& path, const std::string& name) {
  std::string clean = path;
  while (clean.ends_with('/')) clean.pop_back();
  bool directory = clean.size() < path.size();
  for (std::string_view end : {"/.", "/.."}) directory = directory || clean.ends_with(end);
  if (!directory) {
    directory = sys::OpenInRoot(root, clean, O_PATH | O_DIRECTORY).ok();
  }
  Landing landing;
  if (directory) {
    landing.parent = TRY(MakeDirectories(root, clean).Context(path));
    landing.leaf = name;
  } else {
    size_t slash = clean.rfind('/');
    landing.parent = TRY(MakeDirectories(root, clean.substr(0, slash)).Context(path));
    landing.leaf = clean.substr(slash + 1);
  }
  if (landing.leaf.empty() || landing.leaf == "." || landing.leaf == "..") {
    return Error{Code::kUsage, path + ": the copy has no name there"};
  }
  return landing;
}

Result<Fd> OpenSource(int root, const std::string& path) {
  Fd looked = TRY(sys::OpenInRoot(root, path, O_PATH).Context(path));
  struct stat st {};
  if (::fstat(looked.get(), &st) != 0) return Errno("fstat " + path);
  int flags = S_ISDIR(st.st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
  if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
    return Error{Code::kInvalid, path + " is neither a file nor a directory"};
  }
  return sys::OpenInRoot(root, path, flags).Context(path);
}

}  // namespace session
